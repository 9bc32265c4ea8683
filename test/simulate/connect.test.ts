import { describe, expect, it } from 'vitest'
import { httpRoute, type Manifest, policy, toBackend } from '../support/manifests.ts'
import { simulate } from './simulator-rig.ts'

const objects = (connect: object): Manifest[] => [
  policy('tunnels', 'Gateway/edge', { frontend: { connect } }),
  policy('rules', 'HTTPRoute/packages', {
    traffic: {
      authorization: { policy: { matchExpressions: ['source.address == "192.0.2.7"'] } },
    },
  }),
  {
    apiVersion: 'sluice.dev/v1alpha1',
    kind: 'GatewayBackend',
    metadata: { name: 'internet', namespace: 'default' },
    spec: { dynamicForwardProxy: {} },
  },
  httpRoute('packages', {
    hostnames: ['registry.example'],
    rules: [{ backendRefs: [toBackend('internet')] }],
  }),
]

describe('requests for tunnels', () => {
  const ask = async (host: string, connect: object, address = '192.0.2.7') => {
    const request = { method: 'CONNECT', host, path: '', source: { address, port: 1 } }
    return (await simulate(objects(connect), request)).outcome
  }
  const route = { mode: 'Route' }

  it('are decided by the rules of the listener, the routes and their policies', async () => {
    expect(await ask('registry.example:443', route)).toMatchObject({
      verdict: 'undecided',
      reason: 'backend: the host of the request must be looked up',
      backend: 'default/internet',
    })
    const refused = { verdict: 'answer', status: 403 }
    expect(await ask('registry.example:25', route)).toMatchObject(refused)
    expect(await ask('registry.example:443', route, '192.0.2.8')).toMatchObject(refused)
    expect(await ask('other.example:443', route)).toMatchObject({ status: 404 })
    expect(await ask('registry.example:443', { mode: 'Deny' })).toMatchObject({ status: 405 })
  })
})

import { describe, expect, it } from 'vitest'
import { useGateway, useUpstream } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { gateway, httpRoute } from '../support/manifests.ts'
import type { ReceivedRequest } from '../support/upstream.ts'

const routed = (name: string) =>
  httpRoute(name, {
    hostnames: [`${name}.example.com`],
    rules: [{ backendRefs: [{ name, port: 80 }] }],
  })

const service = (name: string) => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name },
  spec: { ports: [{ name: 'http', port: 80 }] },
})

/** One endpoint of a Service, with its hints. */
const slice = (of: string, zone: string, to: number, hints: object | undefined) => ({
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  metadata: { name: `${of}-${zone}`, labels: { 'kubernetes.io/service-name': of } },
  addressType: 'IPv4',
  ports: [{ name: 'http', port: to }],
  endpoints: [{ addresses: ['127.0.0.1'], zone, ...(hints && { hints }) }],
})

const zones = (...names: string[]) => ({ forZones: names.map((name) => ({ name })) })

async function reached(name: string): Promise<Set<string>> {
  const seen = new Set<string>()
  for (let round = 0; round < 16; round++) {
    const { status, body } = await running.send(port, { host: `${name}.example.com` })
    expect(status).toBe(200)
    seen.add((JSON.parse(body) as ReceivedRequest).upstream)
  }
  return seen
}

const port = await freePort()
const near = useUpstream('near')
const far = useUpstream('far')
const running = useGateway(async () => {
  const closed = await freePort()
  return {
    env: { SLUICE_ZONE: 'zone-a', SLUICE_NODE: 'node-1' },
    manifests: [
      gateway(port),
      ...['hinted', 'half-hinted', 'elsewhere', 'node', 'down'].flatMap((name) => [
        service(name),
        routed(name),
      ]),
      slice('hinted', 'zone-a', near.port, zones('zone-a')),
      slice('hinted', 'zone-b', far.port, zones('zone-b', 'zone-c')),
      slice('half-hinted', 'zone-a', near.port, zones('zone-a')),
      slice('half-hinted', 'zone-b', far.port, undefined),
      slice('elsewhere', 'zone-b', near.port, zones('zone-b')),
      slice('elsewhere', 'zone-c', far.port, zones('zone-c')),
      slice('node', 'zone-a', near.port, { forNodes: [{ name: 'node-1' }], ...zones('zone-b') }),
      slice('node', 'zone-b', far.port, { forNodes: [{ name: 'node-2' }], ...zones('zone-a') }),
      slice('down', 'zone-a', closed, zones('zone-a')),
      slice('down', 'zone-b', far.port, zones('zone-b')),
    ],
  }
})

describe('endpoints of the zone', () => {
  it('receive all requests if every endpoint has hints', async () => {
    expect(await reached('hinted')).toEqual(new Set(['near']))
    expect(await reached('node')).toEqual(new Set(['near']))
  })

  it('are not preferred if some endpoints have no hints, or none is in the zone', async () => {
    expect(await reached('half-hinted')).toEqual(new Set(['near', 'far']))
    expect(await reached('elsewhere')).toEqual(new Set(['near', 'far']))
  })

  it('are replaced by endpoints of other zones while they fail', async () => {
    const first = await running.send(port, { host: 'down.example.com' })
    expect(first.status).toBe(503)
    const second = await running.send(port, { host: 'down.example.com' })
    expect((JSON.parse(second.body) as ReceivedRequest).upstream).toBe('far')
  })
})

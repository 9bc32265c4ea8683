import { describe, expect, it } from 'vitest'
import { useAuthority, useGateway } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { configMap, gateway, manifest, tlsSecret } from '../support/manifests.ts'
import { waitFor } from '../support/wait-for.ts'

const authority = useAuthority()
const old = useAuthority({ notAfter: new Date(Date.now() - 60_000) })
const port = await freePort()
const names = ['a.example.com']
const running = useGateway(() => {
  const notAfter = new Date(Date.now() - 60_000)
  const tls = { certificateRefs: [{ name: 'ended' }] }
  const listeners = [{ name: 'https', port, protocol: 'HTTPS', tls }]
  return {
    manifests: {
      'gateway.yaml': manifest(gateway(port, { listeners })),
      'ended.yaml': manifest(tlsSecret('ended', authority.issue(names, 'ec', { notAfter }))),
      'good.yaml': manifest(tlsSecret('good', authority.issue(names))),
    },
  }
})

const warnings = () => running.stderr.split('\n').filter((line) => line.includes(' expired at '))

describe('an expired certificate', () => {
  it('is logged once, and the listener stays programmed', async () => {
    await waitFor('the warning', () => warnings().length > 0)
    expect(warnings()).toEqual([expect.stringContaining('Secret default/ended: tls.crt expired')])
    await running.condition('Gateway', 'edge', 'Programmed', 'True')
    // Another change causes another check.
    running.write('authorities.yaml', manifest(configMap('old', { 'ca.crt': old.certificate })))
    await waitFor('the second warning', () => warnings().length > 1)
    expect(warnings().slice(1)).toEqual([
      expect.stringContaining('ConfigMap default/old: ca.crt expired'),
    ])
  })
})

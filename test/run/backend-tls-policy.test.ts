import { describe, expect, it } from 'vitest'
import { configMap, manifest } from '../support/manifests.ts'
import { waitFor } from '../support/wait-for.ts'
import { authority, conditionOf, edge, get, port, running, seen } from './backend-tls-rig.ts'

describe('BackendTLSPolicy', () => {
  it('connects to the Service by TLS and verifies the configured name', async () => {
    const { upstream, tls } = seen(await get('std'))
    expect([upstream, tls?.serverName]).toEqual(['named', 'named.example.org'])
    expect(await conditionOf('BackendTLSPolicy', 'std', 'Accepted')).toMatchObject({
      status: 'True',
    })
    expect(await conditionOf('BackendTLSPolicy', 'std', 'ResolvedRefs')).toMatchObject({
      status: 'True',
    })
  })

  it('presents the client certificate of the Gateway, and reports one that is unusable', async () => {
    expect(seen(await get('std-client')).tls?.client).toBe('robot')
    expect(await conditionOf('Gateway', 'edge', 'ResolvedRefs')).toMatchObject({ status: 'True' })
    // Only a BackendTLSPolicy asks for it.
    expect((await get('mutual-none')).status).toBe(503)

    running.write('edge.yaml', edge('half'))
    await running.sendUntil(
      port,
      { host: 'std-client.example.com' },
      ({ status }) => status === 503,
    )
    await waitFor('the condition', async () => {
      const { conditions = [] } = (await running.status('Gateway', 'edge')) ?? {}
      return conditions.some(({ reason }) => reason === 'InvalidClientCertificateRef')
    })
    expect(await conditionOf('BackendTLSPolicy', 'std-client', 'Accepted')).toMatchObject({
      status: 'False',
      reason: 'Invalid',
    })
    expect(seen(await get('std')).upstream).toBe('named')
    running.write('edge.yaml', edge('client'))
    await running.sendUntil(
      port,
      { host: 'std-client.example.com' },
      ({ status }) => status === 200,
    )
  })

  it('verifies subject alternative names instead of the host name if they are set', async () => {
    expect(seen(await get('std-san')).tls?.serverName).toBe('elsewhere.example.org')
  })

  it("trusts the system's authorities if configured", async () => {
    expect(seen(await get('std-system')).upstream).toBe('named')
  })

  it('refuses a server of another name', async () => {
    expect((await get('std-wrong')).status).toBe(503)
  })

  it('prefers a policy for a port to one for the whole Service', async () => {
    expect(seen(await get('std-section')).upstream).toBe('named')
  })

  it('applies the older of two policies and marks the other as conflicted', async () => {
    expect(seen(await get('std-two')).upstream).toBe('named')
    expect(await conditionOf('BackendTLSPolicy', 'std-two-a', 'Accepted')).toMatchObject({
      status: 'True',
    })
    expect(await conditionOf('BackendTLSPolicy', 'std-two-b', 'Accepted')).toMatchObject({
      status: 'False',
      reason: 'Conflicted',
    })
  })

  it('reports a reference to the wrong kind, and connects to nothing', async () => {
    expect((await get('std-kind')).status).toBe(500)
    expect(await conditionOf('BackendTLSPolicy', 'std-kind', 'ResolvedRefs')).toMatchObject({
      status: 'False',
      reason: 'InvalidKind',
    })
    expect(await conditionOf('BackendTLSPolicy', 'std-kind', 'Accepted')).toMatchObject({
      status: 'False',
      reason: 'NoValidCACertificate',
    })
  })

  it('reports an unknown set of authorities', async () => {
    expect((await get('std-known')).status).toBe(500)
    expect(await conditionOf('BackendTLSPolicy', 'std-known', 'Accepted')).toMatchObject({
      status: 'False',
      reason: 'Invalid',
    })
  })

  it('refuses requests while its ConfigMap is missing, and serves once it exists', async () => {
    expect((await get('std-late')).status).toBe(500)
    expect(await conditionOf('BackendTLSPolicy', 'std-late', 'ResolvedRefs')).toMatchObject({
      status: 'False',
      reason: 'InvalidCACertificateRef',
    })
    running.write('ca-late.yaml', manifest(configMap('late', { 'ca.crt': authority.certificate })))
    await running.sendUntil(port, { host: 'std-late.example.com' }, ({ status }) => status === 200)
    await waitFor('the condition', async () => {
      const accepted = await conditionOf('BackendTLSPolicy', 'std-late', 'Accepted')
      return accepted?.status === 'True'
    })
  })
})

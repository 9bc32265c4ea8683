import { describe, expect, it } from 'vitest'
import { configMap, manifest } from '../support/manifests.ts'
import { waitFor } from '../support/wait-for.ts'
import { authority, conditionOf, edge, get, port, running, seen } from './backend-tls-rig.ts'

describe('BackendTLSPolicy', () => {
  it('makes the connection to a Service TLS, by the name that it gives', async () => {
    const { upstream, tls } = seen(await get('std'))
    expect([upstream, tls?.serverName]).toEqual(['named', 'named.example.org'])
    expect(await conditionOf('BackendTLSPolicy', 'std', 'Accepted')).toMatchObject({
      status: 'True',
    })
    expect(await conditionOf('BackendTLSPolicy', 'std', 'ResolvedRefs')).toMatchObject({
      status: 'True',
    })
  })

  it('presents the certificate of the Gateway, and says where that cannot be used', async () => {
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

  it('verifies subject alternative names instead of the host name where they are given', async () => {
    expect(seen(await get('std-san')).tls?.serverName).toBe('elsewhere.example.org')
  })

  it('trusts the system where told to', async () => {
    expect(seen(await get('std-system')).upstream).toBe('named')
  })

  it('refuses a server of another name', async () => {
    expect((await get('std-wrong')).status).toBe(503)
  })

  it('lets a policy for a port beat one for the whole Service', async () => {
    expect(seen(await get('std-section')).upstream).toBe('named')
  })

  it('lets the older of two win, and tells the other', async () => {
    expect(seen(await get('std-two')).upstream).toBe('named')
    expect(await conditionOf('BackendTLSPolicy', 'std-two-a', 'Accepted')).toMatchObject({
      status: 'True',
    })
    expect(await conditionOf('BackendTLSPolicy', 'std-two-b', 'Accepted')).toMatchObject({
      status: 'False',
      reason: 'Conflicted',
    })
  })

  it('names a reference to the wrong kind, and reaches nobody', async () => {
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

  it('names a set of authorities that it does not know', async () => {
    expect((await get('std-known')).status).toBe(500)
    expect(await conditionOf('BackendTLSPolicy', 'std-known', 'Accepted')).toMatchObject({
      status: 'False',
      reason: 'Invalid',
    })
  })

  it('waits closed for a ConfigMap that is missing, and opens when it comes', async () => {
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

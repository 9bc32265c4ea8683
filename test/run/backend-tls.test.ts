import { describe, expect, it } from 'vitest'
import { manifest } from '../support/manifests.ts'
import {
  clients,
  conditionOf,
  get,
  port,
  reached,
  rotating,
  running,
  seen,
  upstreams,
} from './backend-tls-rig.ts'

describe('TLS to backends', () => {
  it('[BackendTLS.default] trusts the authorities of the system and sends the name of the destination', async () => {
    const { tls, headers } = seen(await get('system'))
    expect(tls).toMatchObject({ serverName: 'localhost', alpn: 'http/1.1' })
    expect(headers.host).toBe(`localhost:${upstreams.local?.port}`)
  })

  it('[BackendTLS.caCertificateRefs] trusts only the authorities of a ConfigMap if one is named', async () => {
    expect(seen(await get('pinned')).upstream).toBe('local')
    const refused = await get('untrusted')
    expect([refused.status, refused.body]).toEqual([503, 'upstream call failed: TLS failure'])
    expect(upstreams.foreign?.received).toEqual([])
  })

  it('[BackendTLS.caCertificateRefs] trusts the authorities of a Secret, and fails without them', async () => {
    expect(seen(await get('pinned-by-secret')).upstream).toBe('local')
    expect((await get('untrusted-by-secret')).status).toBe(503)
    expect((await get('bad-authorities')).status).toBe(500)
    expect((await conditionOf('GatewayBackend', 'bad-authorities', 'Accepted'))?.message).toContain(
      'has no ca.crt',
    )
  })

  it('verifies an IP address against the certificate, and sends no SNI', async () => {
    expect(seen(await get('address')).tls?.serverName).toBeUndefined()
    expect((await get('misnamed')).status).toBe(503)
  })

  it('[BackendTLS.insecureSkipVerify=All] accepts any certificate', async () => {
    expect(seen(await get('any')).upstream).toBe('foreign')
  })

  it('[BackendTLS.insecureSkipVerify=Hostname] [BackendTLS.insecureSkipVerify] accepts any name, but only from a trusted issuer', async () => {
    expect(seen(await get('any-name')).upstream).toBe('named')
    expect((await get('any-name-untrusted')).status).toBe(503)
  })

  it('[BackendTLS.sni] sends and verifies the configured SNI', async () => {
    expect(seen(await get('sni')).tls?.serverName).toBe('named.example.org')
  })

  it('[BackendTLS.verifySubjectAltNames] verifies the configured names instead of the host name', async () => {
    expect(seen(await get('san')).upstream).toBe('named')
    expect(seen(await get('san-uri')).upstream).toBe('spiffe')
    expect((await get('san-wrong')).status).toBe(503)
  })

  it('[BackendTLS.alpnProtocols] offers the protocols that are given', async () => {
    expect(seen(await get('alpn')).tls).toMatchObject({
      offered: ['acme/2', 'http/1.1'],
      alpn: 'http/1.1',
    })
  })

  it('[BackendTLS.mtlsCertificateRef] presents a client certificate', async () => {
    expect(seen(await get('mutual')).tls?.client).toBe('robot')
    expect((await get('mutual-none')).status).toBe(503)
  })

  it('[BackendTLS.mtlsCertificateRef.ca] verifies by ca.cert of the Secret, unless a ConfigMap is given', async () => {
    expect(seen(await get('mutual-ca')).upstream).toBe('mutual')
    expect((await get('mutual-ca-wrong')).status).toBe(503)
    expect(seen(await get('mutual-ca-beaten')).upstream).toBe('mutual')
  })

  it('never falls back to plaintext if the backend does not speak TLS', async () => {
    expect((await get('no-tls')).status).toBe(503)
    expect(upstreams.plain?.received).toEqual([])
  })

  it('applies to the target of the policy: a backend, a rule, the port of a Service', async () => {
    for (const name of ['targeted', 'by-rule', 'by-port']) {
      expect([name, seen(await get(name)).upstream]).toEqual([name, 'local'])
    }
  })

  it('uses changed authorities and certificates without a restart', async () => {
    expect((await get('rotating')).status).toBe(503)
    running.write('rotating.yaml', rotating('own', clients.known))
    const response = await running.sendUntil(
      port,
      { host: 'rotating.example.com' },
      ({ status }) => status === 200,
    )
    expect(seen(response).tls?.client).toBe('robot')
    running.write('rotating.yaml', rotating('strange', clients.known))
    await running.sendUntil(port, { host: 'rotating.example.com' }, ({ status }) => status === 503)
  })
})

describe('TLS settings that cannot be enforced', () => {
  it.each([
    ['bad-mismatch', 'tls.key is not the key of the certificate in tls.crt'],
    ['bad-half', 'Secret default/half: has no tls.key'],
    ['bad-secret', 'spec.policies.tls.mtlsCertificateRef[0]: Secret absent does not exist'],
    ['bad-map', 'spec.policies.tls.caCertificateRefs[0]: ConfigMap absent does not exist'],
    ['bad-key', 'ConfigMap default/keyless has no ca.crt'],
    ['bad-pem', 'ca.crt has a certificate that cannot be read (the 1. of 1)'],
  ])('refuses requests to the backend %s and reports: %s', async (name, message) => {
    expect((await get(name)).status).toBe(500)
    const accepted = await conditionOf('GatewayBackend', name, 'Accepted')
    expect(accepted).toMatchObject({ status: 'False', reason: 'TranslationError' })
    expect(accepted?.message).toContain(message)
  })

  it('[rule.AtMostOneOf] refuses names to verify together with insecureSkipVerify', async () => {
    const tls = { verifySubjectAltNames: ['a.org'], insecureSkipVerify: 'All' }
    running.write('both.yaml', manifest(...reached('both', upstreams.foreign, tls)))
    const accepted = await running.condition('GatewayBackend', 'both', 'Accepted', 'False')
    expect(accepted.message).toContain('verifySubjectAltNames')
    expect((await get('both')).status).toBe(500)
  })
})

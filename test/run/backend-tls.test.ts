import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Certificate } from '../support/certificates.ts'
import { useAuthority, useFixture, useFolder, useGateway, useUpstream } from '../support/fixture.ts'
import { allConditions, freePort } from '../support/gateway.ts'
import type { TestResponse } from '../support/http-client.ts'
import {
  configMap,
  gateway,
  httpRoute,
  manifest,
  policy,
  service,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import {
  type ReceivedRequest,
  startTlsUpstream,
  type Upstream,
  type UpstreamOptions,
} from '../support/upstream.ts'
import { waitFor } from '../support/wait-for.ts'

const base64 = (text: string) => Buffer.from(text).toString('base64')

function secret(name: string, data: Readonly<Record<string, string>>) {
  const encoded = Object.entries(data).map(([key, value]) => [key, base64(value)])
  const type = 'kubernetes.io/tls'
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name },
    type,
    data: Object.fromEntries(encoded),
  }
}

const pair = ({ certificate, key }: Certificate) => ({ 'tls.crt': certificate, 'tls.key': key })

/** A backend by host name or address, with `tls` among its own policies, and a route to it by host. */
function reached(name: string, upstream: Upstream | undefined, tls: object, host = '127.0.0.1') {
  const backend = {
    apiVersion: 'sluice.dev/v1alpha1',
    kind: 'GatewayBackend',
    metadata: { name },
    spec: { static: { host, port: upstream?.port ?? 0 }, policies: { tls } },
  }
  return [backend, routed(name, toBackend(name))]
}

function routed(name: string, backendRef: object) {
  return httpRoute(name, {
    hostnames: [`${name}.example.com`],
    rules: [{ name: 'all', backendRefs: [backendRef] }],
  })
}

const ca = { caCertificateRefs: [{ name: 'ca' }] }

function tlsPolicy(name: string, target: string, validation: object, metadata: object = {}) {
  const [service = '', sectionName] = target.split('#')
  const targetRef = {
    group: '',
    kind: 'Service',
    name: service,
    ...(sectionName && { sectionName }),
  }
  return {
    apiVersion: 'gateway.networking.k8s.io/v1',
    kind: 'BackendTLSPolicy',
    metadata: { name, ...metadata },
    spec: { targetRefs: [targetRef], validation },
  }
}

const get = (name: string): Promise<TestResponse> =>
  running.send(port, { host: `${name}.example.com` })

const seen = ({ body }: TestResponse) => JSON.parse(body) as ReceivedRequest

async function conditionOf(kind: string, name: string, type: string) {
  const conditions = allConditions(await running.status(kind, name))
  return conditions.find((condition) => condition.type === type)
}

/** The Gateway, with a certificate for backends. */
function edge(secretName: string): string {
  const clientCertificateRef = { group: '', kind: 'Secret', name: secretName }
  return manifest(gateway(port, { tls: { backend: { clientCertificateRef } } }))
}

function manifests(): Record<string, string> {
  const { named, local, mutual, foreign, spiffe, plain } = upstreams
  const configMapRef = { group: '', kind: 'ConfigMap', name: 'ca' }
  const asNamed = { caCertificateRefs: [configMapRef], hostname: 'named.example.org' }
  const toService = (name: string) => ({ name, port: 80 })
  return {
    'edge.yaml': edge('client'),
    'references.yaml': manifest(
      configMap('ca', { 'ca.crt': authority.certificate }),
      configMap('strange', { 'ca.crt': stranger.certificate }),
      configMap('keyless', { 'other.crt': authority.certificate }),
      configMap('nonsense', {
        'ca.crt': '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----',
      }),
      secret('client', pair(clients.known)),
      secret('client-with-ca', { ...pair(clients.known), 'ca.cert': authority.certificate }),
      secret('client-with-strange', { ...pair(clients.known), 'ca.cert': stranger.certificate }),
      secret('mismatched', { ...pair(clients.known), 'tls.key': clients.other.key }),
      secret('half', { 'tls.crt': clients.known.certificate }),
    ),
    'backends.yaml': manifest(
      ...reached('system', local, {}, 'localhost'),
      ...reached('address', local, ca),
      ...reached('pinned', local, ca, 'localhost'),
      ...reached('untrusted', foreign, ca, 'localhost'),
      ...reached('misnamed', named, ca),
      ...reached('any', foreign, { insecureSkipVerify: 'All' }),
      ...reached('any-name', named, { ...ca, insecureSkipVerify: 'Hostname' }),
      ...reached('any-name-untrusted', foreign, { ...ca, insecureSkipVerify: 'Hostname' }),
      ...reached('sni', named, { ...ca, sni: 'named.example.org' }),
      ...reached('san', named, {
        ...ca,
        verifySubjectAltNames: ['other.org', 'named.example.org'],
      }),
      ...reached('san-uri', spiffe, { ...ca, verifySubjectAltNames: ['spiffe://a.example/ns/b'] }),
      ...reached('san-wrong', named, {
        ...ca,
        sni: 'named.example.org',
        verifySubjectAltNames: ['x.org'],
      }),
      ...reached('alpn', local, { ...ca, alpnProtocols: ['acme/2', 'http/1.1'] }),
      ...reached('mutual', mutual, { ...ca, mtlsCertificateRef: [{ name: 'client' }] }),
      ...reached('mutual-none', mutual, ca),
      ...reached('mutual-ca', mutual, { mtlsCertificateRef: [{ name: 'client-with-ca' }] }),
      ...reached('mutual-ca-wrong', mutual, {
        mtlsCertificateRef: [{ name: 'client-with-strange' }],
      }),
      ...reached('mutual-ca-beaten', mutual, {
        ...ca,
        mtlsCertificateRef: [{ name: 'client-with-strange' }],
      }),
      ...reached('bad-mismatch', mutual, { mtlsCertificateRef: [{ name: 'mismatched' }] }),
      ...reached('bad-half', mutual, { mtlsCertificateRef: [{ name: 'half' }] }),
      ...reached('bad-secret', mutual, { mtlsCertificateRef: [{ name: 'absent' }] }),
      ...reached('bad-map', mutual, { caCertificateRefs: [{ name: 'absent' }] }),
      ...reached('bad-key', mutual, { caCertificateRefs: [{ name: 'keyless' }] }),
      ...reached('bad-pem', mutual, { caCertificateRefs: [{ name: 'nonsense' }] }),
      ...reached('no-tls', plain, ca),
    ),
    'policies.yaml': manifest(
      staticBackend('targeted', local?.port ?? 0),
      routed('targeted', toBackend('targeted')),
      policy('targeted', 'GatewayBackend/targeted', { backend: { tls: ca } }),
      staticBackend('by-rule', local?.port ?? 0),
      routed('by-rule', toBackend('by-rule')),
      policy('by-rule', 'HTTPRoute/by-rule#all', { backend: { tls: ca } }),
      ...service('by-port', [local?.port ?? 0]),
      routed('by-port', toService('by-port')),
      policy('by-port', 'Service/by-port#http', {
        backend: { tls: { ...ca, verifySubjectAltNames: ['localhost'] } },
      }),
      policy('by-port-less', 'Service/by-port', {
        backend: { tls: { caCertificateRefs: [{ name: 'strange' }] } },
      }),
    ),
    'standard.yaml': manifest(
      ...[
        'std',
        'std-san',
        'std-system',
        'std-wrong',
        'std-section',
        'std-two',
        'std-kind',
        'std-known',
      ].flatMap((name) => [...service(name, [named?.port ?? 0]), routed(name, toService(name))]),
      ...service('std-client', [mutual?.port ?? 0]),
      routed('std-client', toService('std-client')),
      tlsPolicy('std-client', 'std-client', { ...asNamed, hostname: 'mutual.example.org' }),
      tlsPolicy('std', 'std', asNamed),
      tlsPolicy('std-san', 'std-san', {
        ...asNamed,
        hostname: 'elsewhere.example.org',
        subjectAltNames: [
          { type: 'URI', uri: 'spiffe://nobody' },
          { type: 'Hostname', hostname: '*.example.org' },
        ],
      }),
      tlsPolicy('std-system', 'std-system', {
        hostname: 'named.example.org',
        wellKnownCACertificates: 'System',
      }),
      tlsPolicy('std-wrong', 'std-wrong', { ...asNamed, hostname: 'wrong.example.org' }),
      tlsPolicy('std-section', 'std-section#http', asNamed),
      tlsPolicy('std-section-less', 'std-section', { ...asNamed, hostname: 'wrong.example.org' }),
      tlsPolicy('std-two-a', 'std-two', asNamed, { creationTimestamp: '2026-01-01T00:00:00Z' }),
      tlsPolicy(
        'std-two-b',
        'std-two',
        { ...asNamed, hostname: 'wrong.example.org' },
        {
          creationTimestamp: '2026-02-01T00:00:00Z',
        },
      ),
      tlsPolicy('std-kind', 'std-kind', {
        hostname: 'named.example.org',
        caCertificateRefs: [{ group: '', kind: 'Service', name: 'ca' }],
      }),
      tlsPolicy('std-known', 'std-known', {
        hostname: 'named.example.org',
        wellKnownCACertificates: 'acme.com/roots',
      }),
    ),
    'rotating.yaml': rotating('strange'),
    'late.yaml': manifest(
      ...service('std-late', [named?.port ?? 0]),
      routed('std-late', toService('std-late')),
      tlsPolicy('std-late', 'std-late', {
        ...asNamed,
        caCertificateRefs: [{ ...configMapRef, name: 'late' }],
      }),
    ),
  }
}

function rotating(authorityName: string, client = clients.other): string {
  return manifest(
    configMap('rotating', {
      'ca.crt': (authorityName === 'strange' ? stranger : authority).certificate,
    }),
    secret('rotating', pair(client)),
    ...reached('rotating', upstreams.mutual, {
      caCertificateRefs: [{ name: 'rotating' }],
      mtlsCertificateRef: [{ name: 'rotating' }],
    }),
  )
}

const authority = useAuthority()
const stranger = useAuthority()
const port = await freePort()
const systemFile = join(useFolder('sluice-system-'), 'system.crt')
writeFileSync(systemFile, authority.certificate)
const clients = { known: authority.issue(['robot']), other: stranger.issue(['intruder']) }
const tlsUpstream = (name: string, tls: UpstreamOptions['tls'] & object) =>
  useFixture(() => startTlsUpstream({ name, tls }))
const upstreams = {
  named: tlsUpstream('named', authority.issue(['named.example.org'])),
  local: tlsUpstream('local', authority.issue(['localhost', '127.0.0.1'])),
  mutual: tlsUpstream('mutual', {
    ...authority.issue(['127.0.0.1', 'mutual.example.org']),
    clientAuthority: authority.certificate,
  }),
  foreign: tlsUpstream('foreign', stranger.issue(['localhost', '127.0.0.1'])),
  spiffe: tlsUpstream('spiffe', authority.issue(['spiffe://a.example/ns/b'])),
  plain: useUpstream('plain'),
}
const running = useGateway(() => ({ manifests: manifests(), env: { SSL_CERT_FILE: systemFile } }))

describe('TLS to backends', () => {
  it('[BackendTLS.default] trusts the authorities of the system and sends the name of the destination', async () => {
    const { tls, headers } = seen(await get('system'))
    expect(tls).toMatchObject({ serverName: 'localhost', alpn: 'http/1.1' })
    expect(headers.host).toBe(`localhost:${upstreams.local?.port}`)
  })

  it('[BackendTLS.caCertificateRefs] trusts those of a ConfigMap instead, and nobody else', async () => {
    expect(seen(await get('pinned')).upstream).toBe('local')
    const refused = await get('untrusted')
    expect([refused.status, refused.body]).toEqual([503, 'upstream call failed: TLS failure'])
    expect(upstreams.foreign?.received).toEqual([])
  })

  it('verifies an address by its own names, and sends none', async () => {
    expect(seen(await get('address')).tls?.serverName).toBeUndefined()
    expect((await get('misnamed')).status).toBe(503)
  })

  it('[BackendTLS.insecureSkipVerify=All] takes any certificate where told to', async () => {
    expect(seen(await get('any')).upstream).toBe('foreign')
  })

  it('[BackendTLS.insecureSkipVerify=Hostname] [BackendTLS.insecureSkipVerify] takes any name, but only of a trusted issuer', async () => {
    expect(seen(await get('any-name')).upstream).toBe('named')
    expect((await get('any-name-untrusted')).status).toBe(503)
  })

  it('[BackendTLS.sni] sends and verifies another name', async () => {
    expect(seen(await get('sni')).tls?.serverName).toBe('named.example.org')
  })

  it('[BackendTLS.verifySubjectAltNames] verifies the names that are given instead', async () => {
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

  it('never speaks in clear where the backend has no TLS', async () => {
    expect((await get('no-tls')).status).toBe(503)
    expect(upstreams.plain?.received).toEqual([])
  })

  it('applies to what a policy targets: a backend, a rule, the port of a Service', async () => {
    for (const name of ['targeted', 'by-rule', 'by-port']) {
      expect([name, seen(await get(name)).upstream]).toEqual([name, 'local'])
    }
  })

  it('takes new authorities and certificates over while it runs', async () => {
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

describe('what cannot be enforced', () => {
  it.each([
    ['bad-mismatch', 'tls.key is not the key of the certificate in tls.crt'],
    ['bad-half', 'Secret default/half: has no tls.key'],
    ['bad-secret', 'spec.policies.tls.mtlsCertificateRef[0]: Secret absent does not exist'],
    ['bad-map', 'spec.policies.tls.caCertificateRefs[0]: ConfigMap absent does not exist'],
    ['bad-key', 'ConfigMap default/keyless has no ca.crt'],
    ['bad-pem', 'ca.crt has a certificate that cannot be read (the 1. of 1)'],
  ])('closes the backend %s and says: %s', async (name, message) => {
    expect((await get(name)).status).toBe(500)
    const accepted = await conditionOf('GatewayBackend', name, 'Accepted')
    expect(accepted).toMatchObject({ status: 'False', reason: 'TranslationError' })
    expect(accepted?.message).toContain(message)
  })

  it('[rule.AtMostOneOf] takes names to verify and a way not to verify only one at a time', async () => {
    const tls = { verifySubjectAltNames: ['a.org'], insecureSkipVerify: 'All' }
    running.write('both.yaml', manifest(...reached('both', upstreams.foreign, tls)))
    const accepted = await running.condition('GatewayBackend', 'both', 'Accepted', 'False')
    expect(accepted.message).toContain('verifySubjectAltNames')
    expect((await get('both')).status).toBe(500)
  })
})

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

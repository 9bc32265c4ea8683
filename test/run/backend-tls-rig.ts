import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
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
export function reached(
  name: string,
  upstream: Upstream | undefined,
  tls: object,
  host = '127.0.0.1',
) {
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

const inSecret = (name: string) => ({ caCertificateRefs: [{ kind: 'Secret', name }] })

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

export const get = (name: string): Promise<TestResponse> =>
  running.send(port, { host: `${name}.example.com` })

export const seen = ({ body }: TestResponse) => JSON.parse(body) as ReceivedRequest

export async function conditionOf(kind: string, name: string, type: string) {
  const conditions = allConditions(await running.status(kind, name))
  return conditions.find((condition) => condition.type === type)
}

/** The Gateway, with a certificate for backends. */
export function edge(secretName: string): string {
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
      secret('authorities', { ...pair(clients.other), 'ca.crt': authority.certificate }),
      secret('strangers', { ...pair(clients.other), 'ca.crt': stranger.certificate }),
      secret('half', { 'tls.crt': clients.known.certificate }),
    ),
    'backends.yaml': manifest(
      ...reached('system', local, {}, 'localhost'),
      ...reached('address', local, ca),
      ...reached('pinned', local, ca, 'localhost'),
      ...reached('pinned-by-secret', local, inSecret('authorities'), 'localhost'),
      ...reached('untrusted-by-secret', local, inSecret('strangers'), 'localhost'),
      ...reached('bad-authorities', local, inSecret('half'), 'localhost'),
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

export function rotating(authorityName: string, client = clients.other): string {
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

export const authority = useAuthority()
const stranger = useAuthority()
export const port = await freePort()
const systemFile = join(useFolder('sluice-system-'), 'system.crt')
writeFileSync(systemFile, authority.certificate)
export const clients = { known: authority.issue(['robot']), other: stranger.issue(['intruder']) }
const tlsUpstream = (name: string, tls: UpstreamOptions['tls'] & object) =>
  useFixture(() => startTlsUpstream({ name, tls }))
export const upstreams = {
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
export const running = useGateway(() => ({
  manifests: manifests(),
  env: { SSL_CERT_FILE: systemFile },
}))

import { describe, expect, it } from 'vitest'
import { useAuthority, useFixture, useGateway, useUpstream } from '../support/fixture.ts'
import { freePort, sluice } from '../support/gateway.ts'
import {
  type IdentityProvider,
  keySetOf,
  sign,
  signingKey,
  startIdentityProvider,
} from '../support/identity-provider.ts'
import {
  gateway,
  hostOf,
  httpRoute,
  policy,
  service,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import { waitFor } from '../support/wait-for.ts'

const issuer = 'https://idp.example.com'
const path = '/realms/main/certs?fresh=1'

const guarded = (name: string, backendRef: object, more: object = {}) => [
  httpRoute(name, { hostnames: [hostOf(name)], rules: [{ backendRefs: [toBackend('main')] }] }),
  policy(name, `HTTPRoute/${name}`, {
    traffic: {
      jwtAuthentication: {
        providers: [{ issuer, jwks: { remote: { jwksPath: path.slice(1), backendRef, ...more } } }],
      },
    },
  }),
]

const upstream = useUpstream()
const port = await freePort()
const late = await freePort()
const key = await signingKey('one')
const next = await signingKey('two')
const authority = useAuthority()
const stranger = useAuthority()
const { certificate, key: privateKey } = authority.issue(['idp.example.com'])
const leaky = { keys: [{ ...key.jwk, d: 'private-exponent', p: 'private-prime' }] }
const plain = useFixture(() => startIdentityProvider(leaky, { path }))
const rotating = useFixture(() => startIdentityProvider(keySetOf(key), { path }))
const secure = useFixture(() =>
  startIdentityProvider(keySetOf(key), {
    path,
    tls: { cert: certificate, key: privateKey },
  }),
)
const inCluster = authority.issue(['named.default.svc.cluster.local'])
const named = useFixture(() =>
  startIdentityProvider(keySetOf(key), {
    path,
    tls: { cert: inCluster.certificate, key: inCluster.key },
  }),
)
const running = useGateway(() => {
  const often = { cacheDuration: '100ms' }
  const configMap = (name: string, pem: string) => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name },
    data: { 'ca.crt': pem },
  })
  const serviceTls = (name: string, more: object = {}) =>
    policy(`${name}-tls`, `Service/${name}`, {
      backend: { tls: { caCertificateRefs: [{ name: 'right' }], ...more } },
    })
  const tls = (name: string, ca: string) =>
    policy(`${name}-tls`, `GatewayBackend/${name}`, {
      backend: { tls: { caCertificateRefs: [{ name: ca }], sni: 'idp.example.com' } },
    })
  return {
    manifests: [
      gateway(port),
      staticBackend('main', upstream.port),
      staticBackend('idp', plain.port),
      ...guarded('static', toBackend('idp'), often),
      ...service('idp-service', [plain.port]),
      ...guarded('service', { name: 'idp-service', port: 80 }),
      staticBackend('rotating', rotating.port),
      ...guarded('rotating', toBackend('rotating'), often),
      staticBackend('secure', secure.port),
      configMap('right', authority.certificate),
      tls('secure', 'right'),
      ...guarded('secure', toBackend('secure')),
      staticBackend('distrusted', secure.port),
      configMap('wrong', stranger.certificate),
      tls('distrusted', 'wrong'),
      ...guarded('distrusted', toBackend('distrusted')),
      ...service('renamed', [secure.port]),
      serviceTls('renamed', { sni: 'idp.example.com' }),
      ...guarded('renamed', { name: 'renamed', port: 80 }),
      ...service('named', [named.port]),
      serviceTls('named'),
      ...guarded('named', { name: 'named', port: 80 }),
      ...service('offering', [secure.port]),
      serviceTls('offering', {
        sni: 'other.example.com',
        verifySubjectAltNames: ['idp.example.com'],
        alpnProtocols: ['http/1.1', 'acme/1'],
      }),
      ...guarded('offering', { name: 'offering', port: 80 }),
      ...service('misnamed', [named.port]),
      serviceTls('misnamed'),
      ...guarded('misnamed', { name: 'misnamed', port: 80 }),
      staticBackend('in-clear', secure.port),
      ...guarded('in-clear', toBackend('in-clear')),
      staticBackend('late', late),
      ...guarded('late', toBackend('late'), often),
      ...guarded('nowhere', toBackend('nowhere')),
    ],
  }
})

const request = async (name: string, signer = key) => ({
  host: hostOf(name),
  headers: { authorization: `Bearer ${await sign(signer, { iss: issuer })}` },
})
const status = async (name: string, signer = key) =>
  (await running.send(port, await request(name, signer))).status

const fetchesOf = (provider: IdentityProvider, more: number) => {
  const wanted = provider.fetches + more
  return waitFor('fetches', () => provider.fetches >= wanted)
}

interface PrintedPolicy {
  readonly kind: string
  readonly name: string
  readonly status: { readonly ancestors?: readonly { conditions: readonly { type: string }[] }[] }
}

/** The Accepted condition of a policy, in what `sluice status -o json` prints. */
function acceptedOf(printed: string, name: string): unknown {
  const { objects } = JSON.parse(printed) as { objects: PrintedPolicy[] }
  const found = objects.find((object) => object.kind === 'GatewayPolicy' && object.name === name)
  return found?.status.ancestors?.[0]?.conditions.find(({ type }) => type === 'Accepted')
}

describe('remote JWKS [Traffic.jwtAuthentication]', () => {
  it('[JWKS.remote] [JWTProvider.jwks] [RemoteJWKS.jwksPath] are fetched before the gateway is ready', async () => {
    expect(await status('static')).toBe(200)
    expect(await status('static', next)).toBe(401)
    expect(plain.lastRequest?.url).toBe(path)
  })

  it('[RemoteJWKS.backendRef] can be fetched from a Service', async () => {
    expect(await status('service')).toBe(200)
  })

  it('[RemoteJWKS.cacheDuration] [limit.jwks-cache] are refreshed, and removed keys are no longer accepted', async () => {
    expect(await status('rotating')).toBe(200)
    rotating.serve(keySetOf(key, next))
    await running.sendUntil(port, await request('rotating', next), (r) => r.status === 200)
    expect(await status('rotating')).toBe(200)
    const old = await request('rotating')
    expect((await running.send(port, old)).status).toBe(200)
    rotating.serve(keySetOf(next))
    await running.sendUntil(port, old, (response) => response.status === 401)
    expect(await status('rotating', next)).toBe(200)
  })

  it('are kept while the server fails', async () => {
    rotating.serve(keySetOf(next))
    await running.sendUntil(port, await request('rotating', next), (r) => r.status === 200)
    for (const failure of [500, 302, 'no JSON', { keys: 'none' }]) {
      rotating.serve(failure)
      await fetchesOf(rotating, 1)
      expect(await status('rotating', next)).toBe(200)
    }
    expect(running.stderr).toContain('the server answers 500')
  })

  it('are fetched over TLS if a policy of the backend says so', async () => {
    expect(await status('secure')).toBe(200)
  })

  it('are fetched from a Service under the names that requests would use', async () => {
    expect(await status('renamed')).toBe(200)
    expect(await status('named')).toBe(200)
    expect(await status('offering')).toBe(200)
    const sent = secure.handshakes.map(({ serverName }) => serverName)
    expect(sent).toContain('idp.example.com')
    expect(secure.handshakes).toContainEqual({
      serverName: 'other.example.com',
      offered: ['http/1.1', 'acme/1'],
    })
    expect(await status('misnamed')).toBe(401)
  })

  it('are not fetched from an untrusted server, nor in plaintext from a TLS server', async () => {
    expect(await status('distrusted')).toBe(401)
    expect(await status('in-clear')).toBe(401)
    for (const name of ['distrusted', 'in-clear']) {
      const { message } = await running.condition('GatewayPolicy', name, 'Accepted', 'False')
      expect(message).toContain('no keys have been fetched from 127.0.0.1:')
      expect(message).toContain(`(GatewayBackend default/${name})`)
    }
  })

  it('report a reference that does not resolve', async () => {
    expect(await status('nowhere')).toBe(401)
    const { message } = await running.condition('GatewayPolicy', 'nowhere', 'Accepted', 'False')
    expect(message).toContain('GatewayBackend default/nowhere does not exist')
  })

  it('are not reported as missing for manifests that no gateway runs', async () => {
    const { code, stdout } = await sluice('status', '-f', running.manifests, '-o', 'json')
    expect(code).toBe(0)
    const accepted = (name: string) => acceptedOf(stdout, name)
    for (const name of ['static', 'distrusted', 'late']) {
      expect(accepted(name)).toMatchObject({
        status: 'True',
        reason: 'Valid',
        message: expect.stringContaining('keys are pending: a running gateway fetches them from'),
      })
    }
    expect(accepted('nowhere')).toMatchObject({ status: 'False', reason: 'Invalid' })
    const recorded = await sluice('status', '--log-file', running.logFile, '-o', 'json')
    expect(acceptedOf(recorded.stdout, 'distrusted')).toMatchObject({
      status: 'False',
      message: expect.stringContaining('no keys have been fetched'),
    })
  })

  it('are fetched once the server becomes available', async () => {
    expect(await status('late')).toBe(401)
    await running.condition('GatewayPolicy', 'late', 'Accepted', 'False')
    const server = await startIdentityProvider(keySetOf(key), { path, port: late })
    try {
      await running.sendUntil(port, await request('late'), (response) => response.status === 200)
      await running.condition('GatewayPolicy', 'late', 'Accepted', 'True')
      const url = `http://127.0.0.1:${late}${path} (GatewayBackend default/late)`
      const refused = 'Tokens that need them are refused until they arrive; fetching is retried.'
      const lines = running.stderr.split('\n').filter((line) => line.includes(url))
      expect(lines).toEqual([
        expect.stringMatching(new RegExp(`^warning: no keys from .*ECONNREFUSED.*\\. ${refused}$`)),
        `keys have arrived from ${url}`,
      ])
    } finally {
      await server.close()
    }
  })

  it('are logged without private members, and only if they changed', async () => {
    await fetchesOf(plain, 3)
    const { stdout } = await sluice('log', '--log-file', running.logFile, '-o', 'json')
    const fetched = stdout
      .split('\n')
      .filter((line) => line.includes('dev.sluice.jwks.fetched.v1'))
      .filter((line) => line.includes(`127.0.0.1:${plain.port}/`))
    expect(fetched).toHaveLength(1)
    expect(stdout).not.toContain('private-')
  })

  it('survive a restart while the server is down', async () => {
    await running.stop()
    await Promise.all([plain.close(), secure.close()])
    await running.start()
    expect(await status('static')).toBe(200)
    expect(await status('secure')).toBe(200)
  })
})

/** Durations as long as they can be written, which is more than a timer of Node can wait. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { freePort, type RunningGateway, startGateway } from '../support/gateway.ts'
import {
  type IdentityProvider,
  keySetOf,
  type SigningKey,
  sign,
  signingKey,
  startIdentityProvider,
} from '../support/identity-provider.ts'
import {
  gateway,
  httpRoute,
  manifest,
  policy,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import { startUpstream, type Upstream } from '../support/upstream.ts'
import { waitFor } from '../support/wait-for.ts'

const longest = '99999h99999h99999h99999h'
const issuer = 'https://idp.example.com'
const keysPath = '/keys'

let running: RunningGateway
let upstream: Upstream
let provider: IdentityProvider
let key: SigningKey
let port: number
const held = Promise.withResolvers<() => void>()

beforeAll(async () => {
  port = await freePort()
  key = await signingKey('one')
  provider = await startIdentityProvider(keySetOf(key), { path: keysPath })
  upstream = await startUpstream('main', ({ path }, response) => {
    if (path === '/held') return held.resolve(() => response.end('done'))
    response.writeHead(path === '/fails' ? 503 : 200)
    response.end()
  })
  const keepalive = { time: longest, interval: longest }
  const jwtAuthentication = {
    providers: [
      {
        issuer,
        jwks: {
          remote: { jwksPath: keysPath, backendRef: toBackend('idp'), cacheDuration: longest },
        },
      },
    ],
  }
  running = await startGateway({
    env: { CONNECTION_TERMINATION_DEADLINE: '99999h', SLUICE_STREAM_IDLE_TIMEOUT: '99999h' },
    manifests: {
      'all.yaml': manifest(
        gateway(port),
        staticBackend('main', upstream.port),
        staticBackend('idp', provider.port),
        ...['plain', 'tokens', 'retried'].map((name) =>
          httpRoute(name, {
            hostnames: [`${name}.example.com`],
            rules: [{ backendRefs: [toBackend('main')] }],
          }),
        ),
        policy('clients', 'Gateway/edge', {
          frontend: {
            tcp: { keepalive },
            http: {
              http1IdleTimeout: longest,
              maxConnectionDuration: longest,
              http2KeepaliveInterval: longest,
              http2KeepaliveTimeout: longest,
            },
          },
        }),
        policy('backends', 'GatewayBackend/main', {
          backend: {
            tcp: { connectTimeout: longest, keepalive },
            http: { requestTimeout: longest },
          },
        }),
        policy('plain', 'HTTPRoute/plain', { traffic: { timeouts: { request: longest } } }),
        policy('tokens', 'HTTPRoute/tokens', { traffic: { jwtAuthentication } }),
        policy('retried', 'HTTPRoute/retried', {
          traffic: {
            timeouts: { request: '300ms' },
            retry: { codes: [503], attempts: 3, backoff: longest },
          },
        }),
      ),
    },
  })
}, 60_000)

afterAll(async () => {
  await running?.dispose()
  await Promise.all([upstream?.close(), provider?.close()])
})

const send = (name: string, more: object = {}) =>
  running.send(port, { host: `${name}.example.com`, ...more })

describe('durations longer than a timer can wait', () => {
  it('do not cut requests, connections and attempts', async () => {
    expect((await send('plain')).status).toBe(200)
  })

  it('do not cause repeated fetches of keys', async () => {
    const token = await sign(key, { iss: issuer })
    for (let sent = 0; sent < 20; sent++) {
      const headers = { authorization: `Bearer ${token}` }
      expect((await send('tokens', { headers })).status).toBe(200)
    }
    expect(provider.fetches).toBe(1)
  })

  it('do not cause an immediate retry', async () => {
    expect((await send('retried', { path: '/fails' })).status).toBe(504)
    expect(upstream.received.filter(({ path }) => path === '/fails')).toHaveLength(1)
  })

  it('do not cut requests in flight when the gateway stops', async () => {
    const answer = send('plain', { path: '/held' })
    const release = await held.promise
    const ended = running.stop()
    await waitFor('closed listeners', () =>
      send('plain').then(
        () => false,
        () => true,
      ),
    )
    release()
    expect((await answer).status).toBe(200)
    expect(await ended).toBe(0)
    expect(running.stderr).not.toContain('TimeoutOverflowWarning')
  })
})

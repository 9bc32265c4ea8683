/** A gateway with sign-in at providers that also do what a good one never does. */
import { beforeEach, expect } from 'vitest'
import { useFixture, useGateway, useUpstream } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import type { TestResponse } from '../support/http-client.ts'
import {
  gateway,
  httpRoute,
  manifest,
  policy,
  secret,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import { startScriptedProvider } from '../support/scripted-provider.ts'
import { Browser } from '../support/sign-in-browser.ts'

export const provider = useFixture(startScriptedProvider)
export const other = useFixture(startScriptedProvider)
const upstream = useUpstream('main', (received, response) => {
  if (received.path === '/plant') response.setHeader('set-cookie', ['__Host-sluice-s-0=x', 'own=1'])
  response.setHeader('content-type', 'application/json')
  response.end(JSON.stringify(received))
})
export const port = await freePort()

export const at = (path: string, name = 'app') => `http://${name}.localhost:${port}${path}`
export const hostOf = (name: string) => `${name}.localhost`
export const keyOf = (letter: string) => letter.repeat(40)

const oidc = (more: Record<string, unknown> = {}) => ({
  issuer: provider.issuer,
  clientId: 'app',
  clientSecretRef: { name: 'client' },
  scopes: ['offline_access'],
  ...more,
})
const rules = [{ backendRefs: [toBackend('main')] }]
const route = (name: string) => httpRoute(name, { hostnames: [hostOf(name)], rules })
const guarded = (name: string, spec: Record<string, unknown>, traffic: object = {}) => [
  route(name),
  policy(name, `HTTPRoute/${name}`, { traffic: { oidc: spec, ...traffic } }),
]
const pathRoute = (name: string) =>
  httpRoute(name, {
    hostnames: [hostOf('several')],
    rules: [{ matches: [{ path: { value: `/${name}` } }], backendRefs: [toBackend('main')] }],
  })

export const keys = (entries: Record<string, string>) => secret('session-keys', entries)
export const running = useGateway(() => ({
  args: ['--workers', '2'],
  manifests: {
    'all.yaml': manifest(
      gateway(port),
      staticBackend('main', upstream.port),
      secret('client', { clientSecret: 'app-secret' }),
      ...guarded(
        'app',
        oidc({ backChannelLogoutPath: '/back', frontChannelLogoutPath: '/front' }),
        {
          authorization: { policy: { matchExpressions: ['jwt.sub != "eve"'] } },
          identity: { dimensions: { user: 'jwt.sub' } },
          transformation: { request: { set: [{ name: 'x-user', value: 'identity.user' }] } },
        },
      ),
      ...guarded(
        'forwards',
        oidc({ forwardAccessToken: true, forwardIDToken: { header: 'X-Id' } }),
      ),
      ...guarded('short', oidc({ signInTimeout: '1ms' })),
      ...guarded('stepped', oidc({ acrValues: ['gold'] })),
      ...guarded('missing', oidc({ clientSecretRef: { name: 'absent' } })),
      ...guarded('rotated', oidc({ sessionKeysRef: { name: 'session-keys' } })),
      ...guarded('public', { issuer: provider.issuer, clientId: 'app' }),
      route('open'),
      pathRoute('one'),
      policy('one', 'HTTPRoute/one', {
        traffic: { oidc: oidc({ redirectURI: '/one/callback', logoutPath: '/one/logout' }) },
      }),
      pathRoute('two'),
      policy('two', 'HTTPRoute/two', {
        traffic: {
          oidc: oidc({
            issuer: other.issuer,
            redirectURI: '/two/callback',
            logoutPath: '/two/logout',
          }),
        },
      }),
    ),
    'keys.yaml': manifest(keys({ '2026-01': keyOf('a') })),
  },
}))

beforeEach(() => {
  provider.reset()
  other.reset()
})

export const echo = ({ body }: TestResponse) =>
  JSON.parse(body) as { path: string; headers: Record<string, string | undefined> }
export const sessionCookies = (browser: Browser, name = 'app') =>
  [...browser.jar(hostOf(name)).keys()].filter((one) => one.startsWith('__Host-sluice-s-'))
export const transactions = (browser: Browser, name = 'app') =>
  [...browser.jar(hostOf(name)).keys()].filter((one) => one.startsWith('__Host-sluice-t-'))

export async function signedIn(name = 'app'): Promise<Browser> {
  const browser = new Browser()
  expect((await browser.open(at('/', name))).status).toBe(200)
  return browser
}

/** Names that do not compress well. */
export const groupsOf = (count: number) =>
  Array.from({ length: count }, (_, at) => `group-${((at + 1) * 2_654_435_761).toString(36)}-${at}`)

export async function until(isDone: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + 30_000
  while (!(await isDone())) {
    if (performance.now() > end) throw new Error('waited in vain')
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

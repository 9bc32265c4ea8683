/** Browser sign-in for a whole Gateway, beside credentials of programs, and with a recent sign-in for one route. */
import { expect, it } from 'vitest'
import { useFixture, useGateway, useUpstream } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { inSeconds } from '../support/identity-provider.ts'
import {
  gateway,
  httpRoute,
  policy,
  secret,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import { startScriptedProvider } from '../support/scripted-provider.ts'
import { Browser } from '../support/sign-in-browser.ts'

const port = await freePort()
const provider = useFixture(startScriptedProvider)
const upstream = useUpstream('main', (received, response) => response.end(JSON.stringify(received)))
const at = (path: string) => `http://app.localhost:${port}${path}`
const oidc = (more: object = {}) => ({
  issuer: provider.issuer,
  clientId: 'app',
  clientSecretRef: { name: 'client' },
  ...more,
})
const route = (name: string) =>
  httpRoute(name, {
    rules: [{ matches: [{ path: { value: `/${name}` } }], backendRefs: [toBackend('main')] }],
  })

useGateway(() => ({
  manifests: [
    gateway(port),
    staticBackend('main', upstream.port),
    secret('client', { clientSecret: 'app-secret' }),
    secret('keys', { program: JSON.stringify({ key: 'key-of-program' }) }),
    route('open'),
    route('recent'),
    policy('all', 'Gateway/edge', {
      traffic: {
        // So that the callback needs no route.
        phase: 'PreRouting',
        apiKeyAuthentication: { mode: 'Optional', secretRef: { name: 'keys' } },
        oidc: oidc({ passThroughAuthHeader: true }),
        transformation: {
          request: { set: [{ name: 'x-user', value: 'default(jwt.sub, default(apiKey.id, ""))' }] },
        },
      },
    }),
    policy('recent', 'HTTPRoute/recent', {
      traffic: {
        oidc: oidc({ redirectURI: '/recent/callback', logoutPath: '/recent/out', maxAge: '5m' }),
      },
    }),
  ],
}))

const userOf = ({ body }: { readonly body: string }) =>
  (JSON.parse(body) as { headers: Record<string, string> }).headers['x-user']

it('signs users in on every route of a Gateway, and sends no session cookie to a backend', async () => {
  const browser = new Browser()
  const visit = await browser.open(at('/open'))
  expect([visit.status, userOf(visit)]).toEqual([200, 'ann'])
  expect(visit.body).not.toContain('__Host-sluice')
  expect((await new Browser().fetch(at('/open'))).status).toBe(401)
})

it('lets programs pass with credentials that another policy has accepted, and with no others', async () => {
  const as = (authorization: string) => ({ headers: { authorization } })
  const passed = await new Browser().fetch(at('/open'), as('Bearer key-of-program'))
  expect([passed.status, userOf(passed)]).toEqual([200, 'program'])
  for (const credentials of ['Bearer stranger', 'Basic YTpi', 'Bearer']) {
    expect((await new Browser().fetch(at('/open'), as(credentials))).status).toBe(401)
  }
})

it('refuses a sign-in that is not as recent as a policy of the route asks for', async () => {
  provider.reset()
  provider.behaviour.claims = { auth_time: inSeconds(-3_600) }
  const late = await new Browser().open(at('/recent'))
  expect([late.status, provider.lastAuthorization.get('max_age')]).toEqual([400, '300'])
  provider.behaviour.claims = {}
  // Without the time of the sign-in, nobody knows how recent it is.
  expect((await new Browser().open(at('/recent'))).status).toBe(400)
  provider.behaviour.claims = { auth_time: inSeconds(-10) }
  const browser = new Browser()
  const recent = await browser.open(at('/recent'))
  expect(recent.status).toBe(200)
  expect((await browser.fetch(at('/recent'))).status).toBe(200)
  // The session of the Gateway's policy is not that of the route's.
  const other = new Browser()
  expect((await other.open(at('/open'))).status).toBe(200)
  expect((await other.fetch(at('/open'))).status).toBe(200)
  expect((await other.fetch(at('/recent'))).status).toBe(401)
})

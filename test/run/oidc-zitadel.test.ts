/** Browser sign-in at the provider of zitadel's Go library, and introspection of the opaque tokens that it issues. */
import { expect, it } from 'vitest'
import { useFixture, useGateway, useUpstream } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import {
  gateway,
  httpRoute,
  policy,
  secret,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import { describeWithParts, partPath } from '../support/parts.ts'
import { Browser, type Visit } from '../support/sign-in-browser.ts'
import { clientSecret, startZitadel, user } from '../support/zitadel.ts'

describeWithParts(['zitadel-oidc'], "zitadel's provider", async () => {
  const port = await freePort()
  const app = `http://localhost:${port}`
  const provider = useFixture(() =>
    startZitadel(partPath('zitadel-oidc'), `${app}/oauth2/callback`),
  )
  const upstream = useUpstream('main', ({ path, headers }, response) => {
    const { 'x-user': name, authorization = '' } = headers
    response.end(JSON.stringify({ path, name, authorization }))
  })
  useGateway(() => ({
    manifests: [
      gateway(port),
      staticBackend('main', upstream.port),
      staticBackend('provider', provider.port),
      secret('client', { clientSecret }),
      httpRoute('app', { rules: [{ backendRefs: [toBackend('main')] }] }),
      policy('app', 'HTTPRoute/app', {
        traffic: {
          oidc: {
            issuer: provider.issuer,
            clientId: 'web',
            clientSecretRef: { name: 'client' },
            scopes: ['email', 'offline_access'],
            forwardAccessToken: true,
          },
          transformation: { request: { set: [{ name: 'x-user', value: 'jwt.sub' }] } },
        },
      }),
      httpRoute('api', {
        rules: [
          {
            matches: [{ path: { type: 'PathPrefix', value: '/api' } }],
            backendRefs: [toBackend('main')],
          },
        ],
      }),
      policy('api', 'HTTPRoute/api', {
        traffic: {
          jwtAuthentication: {
            providers: [
              {
                issuer: provider.issuer,
                introspection: {
                  path: '/oauth/introspect',
                  backendRef: toBackend('provider'),
                  clientAuth: { clientId: 'web', secretRef: { name: 'client' } },
                },
              },
            ],
          },
          transformation: { request: { set: [{ name: 'x-user', value: 'jwt.sub' }] } },
        },
      }),
    ],
  }))

  interface EchoedRequest {
    readonly path: string
    readonly name?: string
    readonly authorization: string
  }
  const echoedIn = ({ status, body }: { status: number; body: string }) => {
    expect([status, body]).toEqual([200, expect.stringMatching(/^\{/)])
    return JSON.parse(body) as EchoedRequest
  }

  /** Fills in the form of the provider. */
  async function signIn(browser: Browser, path: string): Promise<Visit> {
    const form = await browser.open(`${app}${path}`)
    const [, id = ''] = /name="id" value="([^"]+)"/.exec(form.body) ?? []
    if (id === '') throw new Error(`no form at ${form.url}: ${form.status} ${form.body}`)
    const { headers, status, body } = await browser.send(`${provider.issuer}login/username`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({ ...user, id }).toString(),
    })
    if (headers.location === undefined) throw new Error(`not signed in: ${status} ${body}`)
    return browser.open(new URL(headers.location, provider.issuer).href)
  }

  it('signs a user in and out, and checks the encrypted tokens that it issues by introspection', async () => {
    const browser = new Browser()
    const visit = await signIn(browser, '/orders?a=1')
    expect(visit.url).toBe(`${app}/orders?a=1`)
    const { path, name, authorization } = echoedIn(visit)
    expect([path, name]).toEqual(['/orders?a=1', 'id1'])
    // An encrypted token (RFC 7516), which only the provider can read.
    expect(authorization.split('.').length).toBe(5)

    const direct = new Browser()
    const headers = { authorization }
    expect(echoedIn(await direct.fetch(`${app}/api`, { headers }))).toMatchObject({ name: 'id1' })
    const other = { authorization: `${authorization}x` }
    expect((await direct.fetch(`${app}/api`, { headers: other })).status).toBe(401)

    // The provider refuses to end its session, since its client has no address to return to.
    const left = await browser.open(`${app}/logout`)
    expect(left.trail.some((url) => url.startsWith(`${provider.issuer}end_session`))).toBe(true)
    expect((await browser.fetch(`${app}/`)).status).toBe(401)
  })
})

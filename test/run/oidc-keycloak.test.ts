/** Browser sign-in at a real Keycloak: its form, renewal, and sign-out by the user and by an administrator. */
import { expect, it } from 'vitest'
import { useFixture, useGateway, useUpstream } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { startKeycloak, startMs } from '../support/keycloak.ts'
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
import { waitFor } from '../support/wait-for.ts'

describeWithParts(['keycloak'], 'Keycloak', async () => {
  const port = await freePort()
  const app = `http://localhost:${port}`
  const clientSecret = 'a-secret+with/odd:signs'
  const keycloak = useFixture(
    () =>
      startKeycloak(partPath('keycloak'), {
        realm: 'shop',
        enabled: true,
        sslRequired: 'none',
        accessTokenLifespan: 5,
        // A refresh token that is used twice ends the session.
        revokeRefreshToken: true,
        refreshTokenMaxReuse: 0,
        clients: [
          {
            clientId: 'app',
            secret: clientSecret,
            redirectUris: [`${app}/*`],
            attributes: {
              'backchannel.logout.url': `http://127.0.0.1:${port}/back`,
              'backchannel.logout.session.required': 'true',
              'post.logout.redirect.uris': `${app}/*`,
            },
          },
        ],
        users: ['ann', 'ben'].map((username) => ({
          username,
          enabled: true,
          email: `${username}@example.com`,
          emailVerified: true,
          firstName: username,
          lastName: 'Archer',
          credentials: [{ type: 'password', value: 'secret', temporary: false }],
        })),
      }),
    (started) => started.close(),
    startMs + 60_000,
  )
  const upstream = useUpstream('main', ({ path, headers }, response) => {
    response.end(`${path} ${headers['x-user']}`)
  })
  useGateway(() => ({
    args: ['--workers', '2'],
    manifests: [
      gateway(port),
      staticBackend('main', upstream.port),
      secret('client', { clientSecret }),
      httpRoute('app', { rules: [{ backendRefs: [toBackend('main')] }] }),
      policy('app', 'HTTPRoute/app', {
        traffic: {
          oidc: {
            issuer: keycloak.issuer,
            clientId: 'app',
            clientSecretRef: { name: 'client' },
            scopes: ['email'],
            backChannelLogoutPath: '/back',
            postLogoutRedirectURI: '/bye',
          },
          transformation: { request: { set: [{ name: 'x-user', value: 'jwt.email' }] } },
        },
      }),
    ],
  }))

  /** Fills in the form of the provider. */
  async function signIn(browser: Browser, path: string, username: string): Promise<Visit> {
    const form = await browser.open(`${app}${path}`)
    const [, action = ''] = /<form[^>]* action="([^"]+)"/.exec(form.body) ?? []
    if (action === '') throw new Error(`no form at ${form.url}: ${form.status} ${form.body}`)
    const { headers, status, body } = await browser.send(action.replaceAll('&amp;', '&'), {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({ username, password: 'secret' }).toString(),
    })
    if (headers.location === undefined) throw new Error(`not signed in: ${status} ${body}`)
    return browser.open(headers.location)
  }

  it('signs in with a form, and is renewed although each refresh token works once', async () => {
    const browser = new Browser()
    const visit = await signIn(browser, '/orders?a=1', 'ann')
    expect(visit).toMatchObject({ status: 200, url: `${app}/orders?a=1` })
    expect(visit.body).toBe('/orders?a=1 ann@example.com')
    for (const round of [1, 2]) {
      await waitFor(`renewal ${round}`, async () => {
        const answers = await Promise.all([1, 2, 3].map(() => browser.fetch(`${app}/`)))
        expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
        return answers.some(({ headers }) => headers['set-cookie'] !== undefined)
      })
    }
  })

  it('ends when an administrator ends it, also for copies of the cookies', async () => {
    const browser = new Browser()
    await signIn(browser, '/', 'ben')
    const copy = browser.copy()
    expect((await copy.fetch(`${app}/`)).status).toBe(200)
    await keycloak.logOut('ben')
    await waitFor('the end', async () => (await copy.fetch(`${app}/`)).status === 401)
  })

  it('ends at the provider if the user signs out, and the next page asks for the password', async () => {
    const browser = new Browser()
    await signIn(browser, '/', 'ann')
    const copy = browser.copy()
    const visit = await browser.open(`${app}/logout`)
    expect(visit.trail).toContain(`${app}/bye`)
    expect(visit.body).toMatch(/<form[^>]* action="/)
    expect((await copy.fetch(`${app}/`)).status).toBe(401)
  })
})

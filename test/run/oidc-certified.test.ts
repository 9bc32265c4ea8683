/** Browser sign-in at a certified provider: two replicas share sessions, and Chromium signs in and out. */

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type BrowserContext, chromium } from 'playwright-core'
import { expect, it } from 'vitest'
import { startSignInProvider } from '../support/certified-provider.ts'
import { useFixture, useFolder, useGateway, useUpstream } from '../support/fixture.ts'
import { freePorts } from '../support/gateway.ts'
import {
  gateway,
  httpRoute,
  policy,
  secret,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import { describeWithParts, partPath } from '../support/parts.ts'
import { Browser } from '../support/sign-in-browser.ts'
import { waitFor } from '../support/wait-for.ts'

const { port, otherPort } = await freePorts('port', 'otherPort')
const one = `http://localhost:${port}`
const other = `http://localhost:${otherPort}`
const clientSecret = 'a-secret+with/odd:signs'
const groups = Array.from(
  { length: 400 },
  (_, at) => `${((at + 1) * 2_654_435_761).toString(36)}-${at}`,
)

const provider = useFixture(() =>
  startSignInProvider({
    gateways: [one, other],
    backChannel: `http://127.0.0.1:${port}`,
    secret: clientSecret,
    tokenSeconds: 3,
    claims: { groups },
  }),
)
const upstream = useUpstream('main', ({ path, headers }, response) => {
  response.setHeader('content-type', 'text/html')
  response.end(`<title>${path}</title><p>${headers['x-user']}`)
})
const folder = useFolder('sluice-oidc-')
const keyFile = join(folder, 'key')
writeFileSync(keyFile, 'k'.repeat(40))

const replica = (at: number) => () => ({
  args: ['--workers', '2', '--session-key-file', keyFile],
  manifests: [
    gateway(at),
    staticBackend('main', upstream.port),
    secret('client', { 'client-secret': clientSecret }),
    httpRoute('app', { rules: [{ backendRefs: [toBackend('main')] }] }),
    policy('app', 'HTTPRoute/app', {
      traffic: {
        oidc: {
          issuer: provider.issuer,
          clientId: 'app',
          clientSecretRef: { name: 'client' },
          backChannelLogoutPath: '/back',
          postLogoutRedirectURI: '/bye',
        },
        transformation: { request: { set: [{ name: 'x-user', value: 'jwt.sub' }] } },
      },
    }),
  ],
})
useGateway(replica(port))
useGateway(replica(otherPort))

it('serves a session on every replica, and renews it there with a refresh token that is used once', async () => {
  const browser = new Browser()
  const visit = await browser.open(`${one}/orders`)
  expect(visit).toMatchObject({ status: 200, url: `${one}/orders` })
  expect(visit.body).toContain('<p>ann')
  expect((await browser.fetch(`${other}/`)).body).toContain('<p>ann')
  for (const at of [one, other, one]) {
    await waitFor('a renewed session', async () => {
      const { status, headers } = await browser.fetch(`${at}/`)
      expect(status).toBe(200)
      return headers['set-cookie'] !== undefined
    })
  }
})

describeWithParts(['chromium'], 'Chromium', () => {
  const started = useFixture(() =>
    chromium.launch({
      executablePath: partPath('chromium'),
      args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
    }),
  )
  const sessionOf = async (context: BrowserContext) =>
    (await context.cookies(one)).filter(({ name }) => name.startsWith('__Host-sluice-s-'))

  it('signs in in several tabs with a session of several cookies, and gets 401 in a script afterwards', async () => {
    const context = await started.newContext()
    // The provider does not bear several first sign-ins at once. The gateway has no session afterwards.
    await (await context.newPage()).goto(one)
    await context.clearCookies({ domain: 'localhost' })
    const tabs = await Promise.all(Array.from({ length: 5 }, () => context.newPage()))
    await Promise.all(tabs.map((tab, at) => tab.goto(`${one}/tab-${at}`)))
    expect(await Promise.all(tabs.map((tab) => tab.title()))).toEqual(
      tabs.map((_, at) => `/tab-${at}`),
    )
    expect((await sessionOf(context)).length).toBeGreaterThan(1)
    const [tab] = tabs
    if (tab === undefined) throw new Error('no tab')
    const ask = () =>
      tab.evaluate(async () => {
        const response = await fetch('/api')
        return { status: response.status, challenge: response.headers.get('www-authenticate') }
      })
    expect((await ask()).status).toBe(200)
    await context.clearCookies()
    expect(await ask()).toEqual({
      status: 401,
      challenge:
        'Bearer realm="sign-in", error="login_required", login_url="/oauth2/callback?return_to=%2Ftab-0"',
    })
    expect(await tab.evaluate('document.cookie')).toBe('')
    await context.close()
  })

  it('signs out at the provider, which tells the gateway, so that copies of the cookies end too', async () => {
    const context = await started.newContext()
    const page = await context.newPage()
    await page.goto(`${one}/orders`)
    const copy = (await sessionOf(context)).map(({ name, value }) => `${name}=${value}`).join('; ')
    await page.goto(`${one}/logout`)
    expect(await page.title()).toBe('Sign out?')
    expect(await sessionOf(context)).toEqual([])
    await page.click('button')
    // The page after the sign-out is protected as well, so the user is asked to sign in again.
    await page.waitForURL(`${one}/bye`)
    const { status } = await fetch(`${one}/`, {
      headers: { cookie: copy, accept: 'application/json' },
    })
    expect(status).toBe(401)
    await context.close()
  })
})

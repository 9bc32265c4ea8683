/** Browser sign-in at a provider that also does what a good one never does. */
import { beforeEach, describe, expect, it } from 'vitest'
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

const provider = useFixture(startScriptedProvider)
const other = useFixture(startScriptedProvider)
const upstream = useUpstream('main', (received, response) => {
  if (received.path === '/plant') response.setHeader('set-cookie', ['__Host-sluice-s-0=x', 'own=1'])
  response.setHeader('content-type', 'application/json')
  response.end(JSON.stringify(received))
})
const port = await freePort()

const at = (path: string, name = 'app') => `http://${name}.localhost:${port}${path}`
const hostOf = (name: string) => `${name}.localhost`
const keyOf = (letter: string) => letter.repeat(40)

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

const keys = (entries: Record<string, string>) => secret('session-keys', entries)
const running = useGateway(() => ({
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

const echo = ({ body }: TestResponse) =>
  JSON.parse(body) as { path: string; headers: Record<string, string | undefined> }
const sessionCookies = (browser: Browser, name = 'app') =>
  [...browser.jar(hostOf(name)).keys()].filter((one) => one.startsWith('__Host-sluice-s-'))
const transactions = (browser: Browser, name = 'app') =>
  [...browser.jar(hostOf(name)).keys()].filter((one) => one.startsWith('__Host-sluice-t-'))

async function signedIn(name = 'app'): Promise<Browser> {
  const browser = new Browser()
  expect((await browser.open(at('/', name))).status).toBe(200)
  return browser
}

describe('signing in', () => {
  it('leads a browser to the provider and back to the page, and tells the backend who it is', async () => {
    const browser = new Browser()
    const visit = await browser.open(at('/orders?page=2'))
    expect(visit).toMatchObject({ status: 200, url: at('/orders?page=2') })
    const { headers, path } = echo(visit)
    expect({ path, user: headers['x-user'], cookie: headers.cookie }).toEqual({
      path: '/orders?page=2',
      user: 'ann',
      cookie: undefined,
    })
    expect(headers.authorization).toBeUndefined()
    expect(Object.fromEntries(provider.lastAuthorization)).toMatchObject({
      response_type: 'code',
      client_id: 'app',
      scope: 'openid offline_access',
      code_challenge_method: 'S256',
      redirect_uri: at('/oauth2/callback'),
    })
    expect(transactions(browser)).toEqual([])
    expect((await browser.fetch(at('/api'))).status).toBe(200)
  })

  it('sets cookies that only the host gets over TLS, and that scripts cannot read', async () => {
    const browser = new Browser()
    const callback = await browser.start(await browser.start(at('/')))
    const { headers, status } = await browser.send(callback)
    expect(status).toBe(302)
    for (const cookie of headers['set-cookie'] ?? []) {
      expect(cookie).toMatch(
        /^__Host-sluice-[^;]*; Path=\/; Secure; HttpOnly; SameSite=Lax; Max-Age=\d+$/,
      )
    }
    expect(headers).toMatchObject({ 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' })
  })

  it('gives scripts 401 with the page that signs in, and leaves no cookie behind', async () => {
    const browser = new Browser()
    const referer = at('/orders')
    for (let count = 0; count < 20; count++) {
      const refused = await browser.fetch(at('/api'), { headers: { referer } })
      expect(refused.status).toBe(401)
      expect(refused.headers['set-cookie']).toBeUndefined()
      expect(refused.headers['www-authenticate']).toBe(
        'Bearer realm="sign-in", error="login_required", login_url="/oauth2/callback?return_to=%2Forders"',
      )
    }
    const login = await browser.open(at('/oauth2/callback?return_to=%2Forders'))
    expect(login).toMatchObject({ status: 200, url: at('/orders') })
  })

  it.each([
    ['a client without browser headers', { accept: 'application/json' }, 401],
    ['an old browser', { accept: 'text/html' }, 302],
    ['a frame', { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe' }, 401],
    [
      'a prefetch',
      { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document', 'sec-purpose': 'prefetch' },
      401,
    ],
    [
      'an image',
      { accept: 'text/html', 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'image' },
      401,
    ],
  ])('gives %s %o %i', async (_, headers, status) => {
    expect((await new Browser().send(at('/'), { headers })).status).toBe(status)
  })

  it('lets questions about CORS pass, but no other OPTIONS', async () => {
    const asks = { origin: 'https://a.example', 'access-control-request-method': 'PUT' }
    const browser = new Browser()
    expect(
      (await browser.send(at('/', 'public'), { method: 'OPTIONS', headers: asks })).status,
    ).toBe(200)
    expect((await browser.send(at('/', 'public'), { method: 'OPTIONS' })).status).toBe(401)
  })

  it('works for several tabs at once, and forgets the oldest of many', async () => {
    const browser = new Browser()
    const starts = []
    for (let tab = 0; tab < 8; tab++) starts.push(await browser.start(at(`/tab-${tab}`)))
    expect(transactions(browser)).toHaveLength(6)
    const callbacks = await Promise.all(starts.map((start) => browser.start(start)))
    for (const tab of [7, 2, 5]) {
      expect(await browser.open(callbacks[tab] ?? '')).toMatchObject({
        status: 200,
        url: at(`/tab-${tab}`),
      })
    }
    // Back to the callback: no error for a user who is signed in.
    expect(await browser.open(callbacks[7] ?? '')).toMatchObject({ status: 200, url: at('/') })
  })

  it('needs no secret for a public client', async () => {
    await signedIn('public')
    expect(provider.lastGrant.get('client_id')).toBe('app')
  })

  it('forwards tokens in place of those of the client', async () => {
    const browser = await signedIn('forwards')
    const sent = { authorization: 'Bearer forged', 'x-id': 'forged' }
    const { headers } = echo(await browser.fetch(at('/', 'forwards'), { headers: sent }))
    expect(headers.authorization).toMatch(/^Bearer access-ann-/)
    expect(headers['x-id']).toMatch(/^ey/)
  })

  it('shows claims to rules of authorization', async () => {
    provider.behaviour.user = 'eve'
    expect((await new Browser().open(at('/'))).status).toBe(403)
  })

  it('keeps the cookies of applications, and drops theirs with reserved names', async () => {
    const browser = await signedIn()
    browser.jar(hostOf('app')).set('theme', 'dark')
    const response = await browser.fetch(at('/plant'))
    expect(response.headers['set-cookie']).toEqual(['own=1'])
    expect(echo(response).headers.cookie).toBe('theme=dark')
  })

  it('signs in at several providers on one host, and keeps them apart', async () => {
    other.behaviour.user = 'bob'
    const browser = new Browser()
    expect((await browser.open(at('/one/a', 'several'))).status).toBe(200)
    const start = await browser.start(at('/two/a', 'several'))
    expect(start).toContain(other.issuer)
    expect((await browser.open(start)).status).toBe(200)
    expect(sessionCookies(browser, 'several')).toHaveLength(2)
    // The session of one policy under the name of the other does not open.
    const [one = '', two = ''] = sessionCookies(browser, 'several')
    const jar = browser.jar(hostOf('several'))
    jar.set(two, jar.get(one) ?? '')
    const statuses = [
      await browser.fetch(at('/one/a', 'several')),
      await browser.fetch(at('/two/a', 'several')),
    ]
    expect(statuses.map(({ status }) => status).sort()).toEqual([200, 401])
    // Routes without a policy stay open.
    expect((await new Browser().open(at('/', 'open'))).status).toBe(200)
  })
})

describe('attacks on the sign-in', () => {
  it.each([
    ['the issuer of another provider', { iss: 'https://evil.example' }, 400],
    ['no issuer', { iss: '' }, 400],
    ['an error', { code: '', error: 'access_denied' }, 403],
    ['neither a code nor an error', { code: '' }, 400],
    ['an unknown code', { code: 'x' }, 403],
    ['another state', { state: 'abc.def' }, 400],
    ['no state', { state: '' }, 400],
  ])('refuses an answer with %s', async (_, answer, status) => {
    provider.behaviour.answer = answer
    const browser = new Browser()
    expect((await browser.open(at('/'))).status).toBe(status)
    expect(sessionCookies(browser)).toEqual([])
  })

  it.each([
    ['of another issuer', { iss: 'https://evil.example' }],
    ['for another client', { aud: 'other' }],
    ['with another nonce', { nonce: 'x' }],
    ['that has expired', { exp: 1_000 }],
    ['for several clients without azp', { aud: ['app', 'other'] }],
    ['with the hash of another access token', { at_hash: 'AAAAAAAAAAAAAAAAAAAAAA' }],
  ])('refuses an ID token %s', async (_, claims) => {
    provider.behaviour.claims = claims
    const browser = new Browser()
    expect((await browser.open(at('/'))).status).toBe(400)
    expect(sessionCookies(browser)).toEqual([])
  })

  it('refuses a callback in another browser, and one that is repeated', async () => {
    const attacker = new Browser()
    const callback = await attacker.start(await attacker.start(at('/')))
    const victim = new Browser()
    expect((await victim.open(callback)).status).toBe(400)
    expect(sessionCookies(victim)).toEqual([])
    const transaction = new Map(attacker.jar(hostOf('app')))
    expect((await attacker.open(callback)).status).toBe(200)
    const replay = new Browser()
    for (const [name, value] of transaction) replay.jar(hostOf('app')).set(name, value)
    expect((await replay.open(callback)).status).toBe(403)
    expect((await new Browser().open(`${callback}&state=x`)).status).toBe(400)
  })

  it('refuses a callback after the time for a sign-in', async () => {
    const browser = new Browser()
    const callback = await browser.start(await browser.start(at('/', 'short')))
    expect((await browser.open(callback)).status).toBe(400)
  })

  it.each([
    '//evil.example',
    '/\\evil.example',
    '/\t/evil.example',
    '/%2f/evil.example',
    '/%5cevil.example',
    '/%09/evil.example',
    'https://evil.example/',
    'javascript:alert(1)',
    '',
    `/${'a'.repeat(3_000)}`,
  ])('returns to the own host for the return path %j', async (path) => {
    const browser = new Browser()
    const visit = await browser.open(at(`/oauth2/callback?return_to=${encodeURIComponent(path)}`))
    expect(visit.url).toBe(at('/'))
    expect(
      (await browser.open(at(`/oauth2/callback?return_to=${encodeURIComponent(path)}`))).url,
    ).toBe(at('/'))
  })

  it('returns to the page itself if its path has two slashes', async () => {
    expect((await new Browser().open(at('//evil.example/'))).url).toMatch(/localhost/)
  })

  it('refuses sessions that were changed, cut, mixed or taken from others', async () => {
    provider.behaviour.claims = { groups: groupsOf(200) }
    const ann = await signedIn()
    provider.behaviour.user = 'bob'
    const bob = await signedIn()
    const [first = '', second = ''] = sessionCookies(ann).sort()
    expect(second).toBe(`${first}.1`)
    const whole = ann.jar(hostOf('app'))
    const value = whole.get(first) ?? ''
    const changes: Record<string, string | undefined>[] = [
      { [first]: `${value.slice(0, 40)}${value[40] === 'A' ? 'B' : 'A'}${value.slice(41)}` },
      { [second]: undefined },
      { [first]: value.replace(/^\d/, '1') },
      { [first]: value.replace(/^\d/, '9') },
      { [second]: bob.jar(hostOf('app')).get(second) },
      { [first]: '' },
      { [first]: '2.' },
      { [first]: `${value}%00` },
    ]
    for (const change of changes) {
      const browser = ann.copy()
      for (const [name, text] of Object.entries(change)) {
        if (text === undefined) browser.jar(hostOf('app')).delete(name)
        else browser.jar(hostOf('app')).set(name, text)
      }
      expect((await browser.fetch(at('/'))).status).toBe(401)
    }
    expect(echo(await bob.fetch(at('/'))).headers['x-user']).toBe('bob')
    expect(echo(await ann.fetch(at('/'))).headers['x-user']).toBe('ann')
  })
})

/** Names that do not compress well. */
const groupsOf = (count: number) =>
  Array.from({ length: count }, (_, at) => `group-${((at + 1) * 2_654_435_761).toString(36)}-${at}`)

describe('large tokens', () => {
  it('are cut into cookies, of which none is left when the session is smaller', async () => {
    provider.behaviour.claims = { groups: groupsOf(200) }
    const browser = await signedIn()
    const many = sessionCookies(browser).length
    expect(many).toBeGreaterThan(1)
    expect((await browser.fetch(at('/'))).status).toBe(200)
    provider.reset()
    const jar = browser.jar(hostOf('app'))
    jar.set(sessionCookies(browser).find((name) => !name.includes('.')) ?? '', 'broken')
    expect((await browser.open(at('/'))).status).toBe(200)
    expect(sessionCookies(browser)).toHaveLength(1)
  })

  it('that are too large are an error, and not a loop', async () => {
    provider.behaviour.claims = { groups: groupsOf(4_000) }
    const visit = await new Browser().open(at('/'))
    expect(visit.status).toBe(500)
    expect(visit.body).toContain('too large for cookies')
  })

  it('a browser that does not keep the session gets an error, and not a loop', async () => {
    const browser = new Browser()
    let visit = await browser.open(at('/'))
    for (let count = 0; count < 5 && visit.status === 200; count++) {
      for (const name of sessionCookies(browser)) browser.jar(hostOf('app')).delete(name)
      visit = await browser.open(at('/'))
    }
    expect(visit.status).toBe(400)
    expect(visit.body).toContain('does not keep the session cookie')
  })
})

describe('renewal', () => {
  it('happens once for many requests of several tabs and workers, before the tokens expire', async () => {
    provider.behaviour.expiresIn = 2
    const browser = await signedIn()
    const old = browser.copy()
    provider.behaviour.expiresIn = 600
    const end = performance.now() + 20_000
    while (provider.refreshes === 0 && performance.now() < end) {
      const all = await Promise.all(Array.from({ length: 16 }, () => old.copy().fetch(at('/'))))
      expect(all.map(({ status }) => status)).toEqual(all.map(() => 200))
    }
    // The old cookie may still come, and gets the new session, also from the other worker.
    const later = await Promise.all(Array.from({ length: 16 }, () => old.copy().fetch(at('/'))))
    expect(later.every(({ status, headers }) => status === 200 && headers['set-cookie'])).toBe(true)
    expect(later[0]?.headers['cache-control']).toBe('private')
    expect({ refreshes: provider.refreshes, reuses: provider.reuses }).toEqual({
      refreshes: 1,
      reuses: 0,
    })
  })

  it('also happens after the tokens have expired, and a provider that fails ends no session', async () => {
    provider.behaviour.expiresIn = 1
    const user = await signedIn()
    const end = Date.now() + 1_100
    await until(async () => Date.now() > end)
    provider.behaviour.tokenStatus = 500
    const down = await user.fetch(at('/'))
    expect(down).toMatchObject({ status: 503, headers: { 'retry-after': '5' } })
    expect(down.body).toContain('the identity provider is not available')
    expect((await user.open(at('/'))).status).toBe(503)
    provider.reset()
    await until(async () => (await user.fetch(at('/'))).status === 200)
  })

  it('that the provider refuses ends the session: 401 for scripts, a new sign-in for pages', async () => {
    provider.behaviour.expiresIn = 1
    const user = await signedIn()
    provider.revokeAll()
    await until(async () => (await user.fetch(at('/'))).status === 401)
    provider.reset()
    expect(await user.open(at('/page'))).toMatchObject({ status: 200, url: at('/page') })
  })
})

async function until(isDone: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + 30_000
  while (!(await isDone())) {
    if (performance.now() > end) throw new Error('waited in vain')
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

describe('signing out', () => {
  it('ends the session here and at the provider, also in copies of the cookie', async () => {
    const browser = await signedIn()
    const copy = browser.copy()
    const location = new URL(await browser.start(at('/logout')))
    expect(location.origin + location.pathname).toBe(`${provider.issuer}/end`)
    expect(Object.fromEntries(location.searchParams)).toMatchObject({
      client_id: 'app',
      post_logout_redirect_uri: at('/'),
      id_token_hint: expect.stringMatching(/^ey/),
    })
    expect(sessionCookies(browser)).toEqual([])
    await until(async () => {
      const all = await Promise.all(Array.from({ length: 8 }, () => copy.copy().fetch(at('/'))))
      return all.every(({ status }) => status === 401)
    })
  })

  it('does not happen by a link or a form of another site', async () => {
    const browser = await signedIn()
    const foreign = { 'sec-fetch-site': 'cross-site' }
    expect((await browser.open(at('/logout'), { headers: foreign })).body).toContain(
      '<form method="post">',
    )
    expect((await browser.open(at('/logout'), { method: 'POST', headers: foreign })).status).toBe(
      403,
    )
    expect((await browser.fetch(at('/'))).status).toBe(200)
    const script = await browser.fetch(at('/logout'), { method: 'POST' })
    expect(JSON.parse(script.body).logout_url).toContain(`${provider.issuer}/end`)
  })

  const back = (token: string) =>
    new Browser().send(at('/back'), {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({ logout_token: token }).toString(),
    })

  it.each([
    ['the session', 'carl', { sid: 'session-of-carl' }],
    ['the user', 'cara', { sub: 'cara' }],
  ])('by a call of the provider ends %s in every worker', async (_, user, claims) => {
    provider.behaviour.user = user
    const carl = await signedIn()
    provider.behaviour.user = 'dora'
    const dora = await signedIn()
    expect((await back(await provider.logoutToken(claims))).status).toBe(200)
    await until(async () => {
      const all = await Promise.all(Array.from({ length: 8 }, () => carl.copy().fetch(at('/'))))
      return all.every(({ status }) => status === 401)
    })
    expect((await dora.fetch(at('/'))).status).toBe(200)
  })

  it.each([
    ['with a nonce', { sub: 'ann', nonce: 'x' }, undefined],
    ['without an event', { sub: 'ann', events: {} }, undefined],
    ['for another client', { sub: 'ann', aud: 'other' }, undefined],
    ['of another issuer', { sub: 'ann', iss: 'https://evil.example' }, undefined],
    ['without sub and sid', {}, undefined],
    ['that has expired', { sub: 'ann', exp: 1_000 }, undefined],
    ['of another type', { sub: 'ann' }, 'at+jwt'],
  ])('refuses a logout token %s', async (_, claims, type) => {
    const browser = await signedIn()
    const response = await back(await provider.logoutToken(claims, type))
    expect(response.status).toBe(400)
    expect(response.headers['cache-control']).toBe('no-store')
    expect(JSON.parse(response.body).error).toBe('invalid_request')
    expect((await browser.fetch(at('/'))).status).toBe(200)
  })

  it('refuses a logout token with the signature of another provider', async () => {
    expect((await back(await other.logoutToken({ iss: provider.issuer, sub: 'ann' }))).status).toBe(
      400,
    )
  })

  it('by a frame of the provider ends the session that it names', async () => {
    provider.behaviour.user = 'fred'
    const fred = await signedIn()
    const frame = (query: string) => new Browser().send(at(`/front?${query}`))
    expect((await frame('sid=session-of-fred')).status).toBe(400)
    expect((await fred.fetch(at('/'))).status).toBe(200)
    expect(
      (await frame(`sid=session-of-fred&iss=${encodeURIComponent(provider.issuer)}`)).status,
    ).toBe(200)
    await until(async () => (await fred.fetch(at('/'))).status === 401)
  })
})

describe('keys, outages and mistakes', () => {
  it('a new key seals, and the old one opens until it is removed', async () => {
    const early = await signedIn('rotated')
    running.write('keys.yaml', manifest(keys({ '2026-01': keyOf('a'), '2026-02': keyOf('b') })))
    const idOf = async () => {
      const browser = await signedIn('rotated')
      const [name = ''] = sessionCookies(browser, 'rotated')
      return browser.jar(hostOf('rotated')).get(name)?.split('.')[1]
    }
    const [name = ''] = sessionCookies(early, 'rotated')
    const first = early.jar(hostOf('rotated')).get(name)?.split('.')[1]
    await until(async () => (await idOf()) !== first)
    expect((await early.fetch(at('/', 'rotated'))).status).toBe(200)
    running.write('keys.yaml', manifest(keys({ '2026-02': keyOf('b') })))
    await until(async () => (await early.fetch(at('/', 'rotated'))).status === 401)
    expect((await early.open(at('/', 'rotated'))).status).toBe(200)
  })

  it('a sign-in that is not as strong as the policy asks for is refused, without a loop', async () => {
    expect((await new Browser().open(at('/', 'stepped'))).status).toBe(403)
    expect(provider.lastAuthorization.get('acr_values')).toBe('gold')
    provider.behaviour.claims = { acr: 'gold' }
    await signedIn('stepped')
  })

  it('nothing passes without the client secret, and the status says so', async () => {
    expect((await new Browser().open(at('/', 'missing'))).status).toBe(500)
    const { message } = await running.condition('GatewayPolicy', 'missing', 'Accepted', 'False')
    expect(message).toContain('clientSecretRef: Secret absent does not exist')
  })

  it('a session survives a restart of the gateway', async () => {
    const browser = await signedIn()
    await running.stop()
    await running.start()
    expect((await browser.fetch(at('/'))).status).toBe(200)
  })

  it('nothing passes while the provider is down or its metadata is broken, and it recovers', async () => {
    await running.stop()
    provider.reset({ isDown: true })
    await running.start()
    const down = await new Browser().open(at('/'))
    expect(down.status).toBe(503)
    expect(down.body).toContain('sign-in is not available')
    provider.reset({ metadata: { token_endpoint: undefined } })
    await until(async () => (await new Browser().open(at('/'))).status === 503)
    provider.reset()
    await until(async () => (await new Browser().open(at('/'))).status === 200)
  })
})

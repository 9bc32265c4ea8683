/** Browser sign-in at providers that also do what a good one never does. */
import { describe, expect, it } from 'vitest'
import { Browser } from '../support/sign-in-browser.ts'
import {
  at,
  echo,
  groupsOf,
  hostOf,
  other,
  provider,
  sessionCookies,
  signedIn,
  transactions,
} from './oidc-rig.ts'

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

  it('decides by the request itself, not by what headers say about another one [CVE-2026-40575]', async () => {
    const headers = {
      accept: 'application/json',
      'x-forwarded-uri': '/oauth2/callback',
      'x-original-url': '/oauth2/callback',
      'x-forwarded-method': 'OPTIONS',
      'x-forwarded-host': hostOf('open'),
      origin: 'https://a.example',
      'access-control-request-method': 'PUT',
    }
    expect((await new Browser().send(at('/'), { headers })).status).toBe(401)
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

  it('keeps its cookies from backends of other routes, which could use them, and lets them set none', async () => {
    const browser = new Browser()
    const jar = browser.jar(hostOf('open'))
    for (const name of ['__Host-sluice-s-0', 'theme', '__Host-sluice-s-0.1']) jar.set(name, 'dark')
    const response = await browser.fetch(at('/plant', 'open'))
    expect(response.headers['set-cookie']).toEqual(['own=1'])
    expect(echo(response).headers.cookie).toBe('theme=dark')
    for (const name of ['theme', 'own']) jar.delete(name)
    expect(echo(await browser.fetch(at('/', 'open'))).headers.cookie).toBeUndefined()
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
  ])('refuses an answer with %s [CVE-2023-27496]', async (_, answer, status) => {
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
  ])(
    'returns to the own host for the return path %j [CVE-2020-4037, CVE-2020-11053, GHSA-qqxw-m5fj-f7gv]',
    async (path) => {
      const browser = new Browser()
      const visit = await browser.open(at(`/oauth2/callback?return_to=${encodeURIComponent(path)}`))
      expect(visit.url).toBe(at('/'))
      expect(
        (await browser.open(at(`/oauth2/callback?return_to=${encodeURIComponent(path)}`))).url,
      ).toBe(at('/'))
    },
  )

  it('returns to the page itself if its path has two slashes', async () => {
    expect((await new Browser().open(at('//evil.example/'))).url).toMatch(/localhost/)
  })

  it('refuses sessions that were changed, cut, mixed or taken from others [CVE-2022-29226]', async () => {
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

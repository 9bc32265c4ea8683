/** Sessions of browser sign-in: their size, renewal, end and keys. */
import { describe, expect, it } from 'vitest'
import { manifest } from '../support/manifests.ts'
import { Browser } from '../support/sign-in-browser.ts'
import {
  at,
  groupsOf,
  hostOf,
  keyOf,
  keys,
  other,
  provider,
  running,
  sessionCookies,
  signedIn,
  until,
} from './oidc-rig.ts'

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
    // The old cookie may still come, and gets the new session, also from the other worker once it has heard of it.
    await until(async () => {
      const later = await Promise.all(Array.from({ length: 16 }, () => old.copy().fetch(at('/'))))
      expect(later.map(({ status }) => status)).toEqual(later.map(() => 200))
      const renewed = later.filter(({ headers }) => headers['set-cookie'] !== undefined)
      for (const { headers } of renewed) expect(headers['cache-control']).toBe('private')
      return renewed.length === later.length
    })
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

  it('happens once if both workers need it at the same time', async () => {
    provider.behaviour.expiresIn = 1
    const user = await signedIn()
    const end = Date.now() + 1_100
    await until(async () => Date.now() > end)
    provider.behaviour.expiresIn = 600
    const all = await Promise.all(Array.from({ length: 24 }, () => user.copy().fetch(at('/'))))
    expect(all.map(({ status }) => status)).toEqual(all.map(() => 200))
    expect([provider.refreshes, provider.reuses]).toEqual([1, 0])
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

describe('signing out', () => {
  it('ends the session here and at the provider, also in copies of the cookie', async () => {
    const browser = await signedIn()
    const copy = browser.copy()
    const location = new URL(await browser.start(at('/logout')))
    expect(location.origin + location.pathname).toBe(`${provider.issuer}/end`)
    // No address that may not be registered at the provider.
    expect(Object.fromEntries(location.searchParams)).toEqual({
      client_id: 'app',
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

  it('by a call of the provider that names a session also ends those of the user that have no name', async () => {
    provider.behaviour.user = 'gina'
    provider.behaviour.claims = { sid: undefined }
    const gina = await signedIn()
    const token = await provider.logoutToken({ sid: 'session-of-gina', sub: 'gina' })
    expect((await back(token)).status).toBe(200)
    await until(async () => (await gina.fetch(at('/'))).status === 401)
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
    provider.reset({ claims: { acr: 'gold' }, expiresIn: 2 })
    const browser = await signedIn('stepped')
    // Tokens of renewals need not say again how the user has signed in.
    provider.behaviour.claims = { sid: undefined }
    await until(async () => {
      const { status, headers } = await browser.fetch(at('/', 'stepped'))
      expect(status).toBe(200)
      return headers['set-cookie'] !== undefined
    })
    const { status } = await browser.fetch(at('/', 'stepped'))
    expect(status).toBe(200)
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

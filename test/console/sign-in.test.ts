/** People sign in at a real OpenID provider, and act if their groups permit it. Every event has their name. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type CertifiedProvider, startConsoleProvider } from '../support/certified-provider.ts'
import { useFolder, useGateway } from '../support/fixture.ts'
import { freePort, sluice } from '../support/gateway.ts'
import { gateway, httpRoute, manifest, policy } from '../support/manifests.ts'
import { describeWithParts } from '../support/parts.ts'
import type { ConsolePage } from './browser.ts'
import { eventually, seriousFaults, startConsole } from './support.ts'

const secret = 'secret-of-the-console'

describeWithParts(['chromium'], 'the console with --console-sign-in oidc', async () => {
  const port = await freePort()
  const consolePort = await freePort()
  const origin = `http://127.0.0.1:${consolePort}`
  const secretFile = join(useFolder('sluice-secret-'), 'secret')
  writeFileSync(secretFile, `${secret}\n`)
  let groups: readonly string[] = ['viewers']
  const provider: CertifiedProvider = await startConsoleProvider(
    `${origin}/signed-in`,
    secret,
    () => groups,
  )
  const gw = useGateway(() => ({
    manifests: {
      'all.yaml': manifest(
        gateway(port),
        httpRoute('app', { rules: [{}] }),
        policy('app', 'HTTPRoute/app', {
          traffic: {
            directResponse: { status: 204 },
            apiKeyAuthentication: {
              configMapSelector: { matchLabels: { 'sluice.dev/api-keys': 'true' } },
            },
          },
        }),
      ),
    },
    args: [
      ...['--console-address', `127.0.0.1:${consolePort}`, '--console-actions', 'true'],
      ...['--console-sign-in', 'oidc', '--console-oidc-issuer', provider.issuer],
      ...['--console-oidc-client', 'console', '--console-oidc-secret-file', secretFile],
      ...['--console-oidc-scopes', 'openid', '--console-readers', 'viewers'],
      ...['--console-operators', 'sre,admins'],
    ],
  }))
  let console: ConsolePage
  const main = () => console.page.locator('main')
  const button = (name: string) => console.page.getByRole('button', { name, exact: true })
  const form = (name: string) => console.page.getByRole('region', { name, exact: true })
  const key = () => console.page.evaluate<string>("sessionStorage.getItem('sluice-console-key')")
  const ask = async (path: string, token: string, init: RequestInit = {}) => {
    const headers = { authorization: `Bearer ${token}`, ...init.headers }
    const response = await fetch(`${origin}/api/${path}`, { ...init, headers })
    return { status: response.status, text: await response.text() }
  }
  const signIn = async () => {
    await button('Sign in').click()
    await console.page.locator('.time-bar .source', { hasText: 'live' }).waitFor()
  }
  /** The data of the newest event of a type. */
  const lastData = async (type: string) => {
    const { stdout } = await sluice('log', '--log-file', gw.logFile, '-o', 'json')
    const events = stdout.split('\n').flatMap((line) => (line === '' ? [] : JSON.parse(line).event))
    return events.findLast((event) => event?.type === `dev.sluice.${type}.v1`)?.data
  }

  beforeAll(async () => {
    console = await startConsole(`${origin}/#/objects`)
  })
  afterAll(async () => {
    await console?.close()
    provider.close()
  })

  it('signs in at the provider, comes back to the same place, and shows readers no action', async () => {
    const { page } = console
    expect(gw.stderr).toContain(`console: ${origin}/\n`)
    expect(await seriousFaults(console)).toEqual([])
    await signIn()
    expect(page.url()).toBe(`${origin}/#/objects`)
    await eventually(() => main().textContent()).toContain('default/app')
    expect(await button('Sign out').getAttribute('title')).toBe('ann@example.com (ann)')
    expect(await page.getByRole('link', { name: 'Roll back & hold' }).count()).toBe(0)
    const body = JSON.stringify({ reason: 'no' })
    expect(await ask('actions/freeze', await key(), { method: 'POST', body })).toEqual({
      status: 403,
      text: 'ann@example.com (ann) may not operate here. The claim groups of the ID token must have sre or admins.\n',
    })
  })

  it('ends the session with the sign-out, and gives nothing to people without a group', async () => {
    const old = await key()
    expect((await ask('about', old)).status).toBe(200)
    await button('Sign out').click()
    await button('Sign in').waitFor()
    expect((await ask('about', old)).status).toBe(401)
    groups = ['others']
    await button('Sign in').click()
    await eventually(() => console.page.locator('.notices').textContent()).toContain(
      'ann@example.com (ann) may not read here',
    )
    await button('Sign out').click()
    await button('Sign in').waitFor()
  })

  it('ends the sessions of a user whom an operator revokes, and lets the user sign in again', async () => {
    groups = ['viewers']
    await button('Sign in').click()
    await eventually(async () => (await ask('about', await key())).status).toBe(200)
    const old = await key()
    const who = ['--issuer', provider.issuer, '--sub', 'ann', '--reason', 'left']
    await sluice('revoke', ...who, '--for', '1h', '--log-file', gw.logFile)
    await eventually(async () => (await ask('about', old)).status).toBe(401)
    await console.page.reload()
    await button('Sign in').waitFor()
  })

  it('completes a sign-in only in the browser that began it, and once', async () => {
    const begun = await fetch(`${origin}/sign-in`, { redirect: 'manual' })
    const location = new URL(begun.headers.get('location') ?? '')
    expect(location.origin).toBe(provider.issuer)
    expect(location.searchParams.get('code_challenge_method')).toBe('S256')
    const cookie = begun.headers.get('set-cookie') ?? ''
    expect(cookie).toMatch(/HttpOnly; SameSite=Lax; Path=\/signed-in/)
    const state = location.searchParams.get('state')
    const answer = `${origin}/signed-in?code=stolen&state=${state}`
    expect((await fetch(answer)).status).toBe(400)
    const headers = { cookie: cookie.split(';', 1)[0] ?? '' }
    const wrongState = await fetch(`${origin}/signed-in?code=stolen&state=other`, { headers })
    expect(wrongState.status).toBe(403)
    // A sign-in that has failed cannot be tried again.
    expect((await fetch(answer, { headers })).status).toBe(400)
  })

  it('freezes and lifts as the person who has signed in', async () => {
    const { page } = console
    groups = ['dev', 'sre']
    await signIn()
    await page.getByRole('link', { name: 'Roll back & hold' }).click()
    await form('Freeze').getByLabel('Reason').fill('year end')
    await button('Freeze').click()
    await eventually(() => form('Freeze').textContent()).toContain('in force at 1 of 1 proxies')
    const banner = form('Held configuration')
    await eventually(() => banner.textContent()).toContain(
      'is held by ann@example.com (ann): year end',
    )
    expect(await seriousFaults(console)).toEqual([])
    await form('Lift the pin').getByLabel('Reason').fill('over')
    await button('Lift the pin').click()
    await eventually(() => banner.count()).toBe(0)
    expect(await lastData('pin.lifted')).toEqual({
      author: 'ann@example.com (ann)',
      reason: 'over',
    })
    // The author is who has signed in, whatever the request says.
    const body = JSON.stringify({ reason: 'x', author: 'bob' })
    const forged = await ask('actions/freeze', await key(), { method: 'POST', body })
    expect(JSON.parse(forged.text)).toMatchObject({
      exitCode: 2,
      reports: ['author: no such option'],
    })
  })

  it('creates a key that works at once, and disables it', async () => {
    const { page } = console
    const send = async (token: string) =>
      (await gw.send(port, { headers: { authorization: `Bearer ${token}` } })).status
    await page.getByRole('link', { name: 'Keys' }).click()
    const create = form('Create a key')
    await create.getByLabel('Name', { exact: true }).fill('ci')
    await create.getByLabel('Reason').fill('for tests')
    await button('Create a key').click()
    const created = (await create.locator('code').textContent()) ?? ''
    expect(created).toMatch(/^sk-/)
    await eventually(() => send(created)).toBe(204)
    const change = form('Change a key')
    await eventually(() => change.textContent()).toContain('default/ci (active)')
    await change.getByLabel('Reason').fill('leaked')
    await button('Change a key').click()
    await eventually(() => send(created)).toBe(401)
    const data = await lastData('apikeys.changed')
    expect(data).toMatchObject({ author: 'ann@example.com (ann)', reason: 'leaked' })
    expect(gw.stderr).not.toContain(created)
    expect(await seriousFaults(console)).toEqual([])
  })

  it('refuses actions of other origins, and without a session', async () => {
    const body = JSON.stringify({ reason: 'forged' })
    const from = (headers: Record<string, string>, token: string) =>
      ask('actions/freeze', token, { method: 'POST', body, headers })
    const session = await key()
    expect((await from({ origin: 'http://evil.test' }, session)).status).toBe(403)
    expect((await from({ 'sec-fetch-site': 'cross-site' }, session)).status).toBe(403)
    expect((await from({}, '')).status).toBe(401)
    expect((await sluice('rollback', '--log-file', gw.logFile)).stdout).toContain('nothing is held')
  })
})

/** Sign-outs and revocations hold in every proxy, and after restarts. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, it, vi } from 'vitest'
import { ClusterRig, stablePort } from '../support/cluster-rig.ts'
import { useFixture, useUpstream } from '../support/fixture.ts'
import { freePort, RunningGateway, sluice } from '../support/gateway.ts'
import { inSeconds, keySetOf, sign } from '../support/identity-provider.ts'
import {
  gateway,
  httpRoute,
  manifest,
  policy,
  secret,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import { startNatsServer } from '../support/nats-server.ts'
import { describeWithParts } from '../support/parts.ts'
import { startScriptedProvider } from '../support/scripted-provider.ts'
import { Browser } from '../support/sign-in-browser.ts'
import { waitFor } from '../support/wait-for.ts'

// Several processes start in each of these.
vi.setConfig({ testTimeout: 90_000, hookTimeout: 90_000 })

const provider = useFixture(startScriptedProvider)
const upstream = useUpstream()
const rules = [{ backendRefs: [toBackend('main')] }]
const manifests = (port: number): string =>
  manifest(
    gateway(port),
    staticBackend('main', upstream.port),
    secret('keys', { one: 'k'.repeat(40) }),
    httpRoute('app', { hostnames: ['app.localhost'], rules }),
    policy('app', 'HTTPRoute/app', {
      traffic: {
        oidc: {
          issuer: provider.issuer,
          clientId: 'app',
          sessionKeysRef: { name: 'keys' },
          backChannelLogoutPath: '/back',
        },
      },
    }),
    httpRoute('api', { hostnames: ['api.localhost'], rules }),
    policy('api', 'HTTPRoute/api', {
      traffic: {
        jwtAuthentication: {
          providers: [
            { issuer: provider.issuer, jwks: { inline: JSON.stringify(keySetOf(provider.key)) } },
          ],
        },
      },
    }),
  )

/** A browser that is signed in as a user. */
async function signedIn(port: number, user: string): Promise<Browser> {
  provider.behaviour.user = user
  const browser = new Browser()
  expect((await browser.open(`http://app.localhost:${port}/`)).status).toBe(200)
  return browser
}

/** Whether the session is refused by all workers at an address. */
const isOut = async (port: number, browser: Browser, address?: string): Promise<boolean> => {
  const all = Array.from({ length: 8 }, () =>
    browser.copy(address).fetch(`http://app.localhost:${port}/`),
  )
  return (await Promise.all(all)).every(({ status }) => status === 401)
}
const signedOut = (port: number, browser: Browser, address?: string) =>
  waitFor('the end of the session', () => isOut(port, browser, address))
const isIn = async (port: number, browser: Browser, address?: string): Promise<boolean> =>
  (await browser.copy(address).fetch(`http://app.localhost:${port}/`)).status === 200

/** Signs the user of a browser out, at the proxy of the loopback address. */
const signOut = (port: number, browser: Browser) =>
  browser
    .copy()
    .open(`http://app.localhost:${port}/logout`, { headers: {} })
    .catch(() => undefined)

describe('in `sluice run` with two workers', async () => {
  const port = await freePort()
  let running: RunningGateway
  afterAll(() => running.dispose())

  const withToken = async (claims: Record<string, unknown>) => {
    const token = await sign(provider.key, { iss: provider.issuer, iat: inSeconds(-5), ...claims })
    return (expected: number) =>
      running.sendUntil(
        port,
        { host: 'api.localhost', headers: { authorization: `Bearer ${token}` } },
        ({ status }) => status === expected,
      )
  }
  const revoke = (...args: string[]) =>
    sluice('revoke', '--log-file', running.logFile, '--issuer', provider.issuer, ...args)

  it('keeps sign-outs of users and of the provider across a crash', async () => {
    running = new RunningGateway({
      manifests: { 'all.yaml': manifests(port) },
      args: ['--workers', '2'],
    })
    await running.start()
    const ann = await signedIn(port, 'ann')
    const bob = await signedIn(port, 'bob')
    const cid = await signedIn(port, 'cid')
    await signOut(port, ann)
    const token = await provider.logoutToken({ sub: 'bob' })
    const called = await new Browser().send(`http://app.localhost:${port}/back`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({ logout_token: token }).toString(),
    })
    expect(called.status).toBe(200)
    const events = await waitFor('both events', async () => {
      const { stdout } = await sluice('log', '--log-file', running.logFile, '-o', 'json')
      const found = stdout.split('\n').filter((line) => line.includes('sessions.ended.v1'))
      return found.length === 2 && found.join('\n')
    })
    expect(events).not.toMatch(/"(ann|bob|sub bob)/)
    await running.kill()
    await running.start()
    expect(await isOut(port, ann)).toBe(true)
    expect(await isOut(port, bob)).toBe(true)
    expect(await isIn(port, cid)).toBe(true)
  })

  it('revokes a token, and all tokens and sessions that a user has, with `sluice revoke`', async () => {
    const dan = await signedIn(port, 'dan')
    const one = await withToken({ sub: 'eve', jti: 'one' })
    const two = await withToken({ sub: 'eve', jti: 'two' })
    const foreign = await withToken({ sub: 'dan' })
    for (const expects of [one, two, foreign]) await expects(200)
    const { stdout, code } = await revoke('--jti', 'one', '--sub', 'dan', '--reason', 'stolen')
    expect(code).toBe(0)
    expect(stdout).toContain(`token one of ${provider.issuer}: refused until `)
    expect((await one(401)).headers['www-authenticate']).toContain('the token was revoked')
    await foreign(401)
    await two(200)
    await signedOut(port, dan)
    const later = await withToken({ sub: 'dan', iat: inSeconds(1) })
    await later(200)
    await running.stop()
    await running.start()
    expect((await one(401)).body).toContain('the token was revoked')
    expect(await isOut(port, dan)).toBe(true)
    expect((await revoke('--reason', 'x')).stderr).toContain('set --jti or --sub')
    const long = await revoke('--jti', 'x', '--reason', 'x', '--for', '500d')
    expect(long.stderr).toContain('--for 500d: expected at most a year from now')
  })
})

describe('in proxies of a controller', () => {
  it('hold in every proxy, also in one that connects later', async () => {
    const port = await stablePort()
    const rig = new ClusterRig({ 'all.yaml': manifests(port) })
    try {
      const plane = await rig.controlPlane()
      const proxy = (name: string, address: string) =>
        rig.proxy({ name, addresses: [plane.address], args: ['--bind-address', address] })
      await proxy('edge-1', '127.0.0.1').start()
      await proxy('edge-2', '127.0.0.2').start()
      const ann = await signedIn(port, 'ann')
      const bob = await signedIn(port, 'bob')
      expect(await isIn(port, ann, '127.0.0.2')).toBe(true)
      await signOut(port, ann)
      await signedOut(port, ann, '127.0.0.2')
      expect(await isIn(port, bob, '127.0.0.2')).toBe(true)
      await proxy('edge-3', '127.0.0.3').start()
      expect(await isOut(port, ann, '127.0.0.3')).toBe(true)
      expect(await isIn(port, bob, '127.0.0.3')).toBe(true)
    } finally {
      await rig.dispose()
    }
  })
})

describeWithParts(['nats-server'], 'in replicas of `sluice run` that share a log', () => {
  it('hold in every replica', async () => {
    const server = await startNatsServer()
    const port = await freePort()
    const key = join(server.folder, 'digest.key')
    writeFileSync(key, Buffer.alloc(32, 5), { mode: 0o600 })
    const replica = (name: string, address: string) =>
      new RunningGateway({
        manifests: { 'all.yaml': manifests(port) },
        nats: server.url,
        env: {
          XDG_STATE_HOME: join(server.folder, name),
          SLUICE_LEASE_DURATION: '4s',
          SLUICE_DIGEST_KEY_FILE: key,
        },
        args: ['--bind-address', address],
      })
    const all = [replica('one', '127.0.0.1'), replica('two', '127.0.0.2')]
    try {
      for (const one of all) await one.start()
      const ann = await signedIn(port, 'ann')
      expect(await isIn(port, ann, '127.0.0.2')).toBe(true)
      await signOut(port, ann)
      await signedOut(port, ann, '127.0.0.2')
    } finally {
      for (const one of all) await one.dispose()
      await server.remove()
    }
  })
})

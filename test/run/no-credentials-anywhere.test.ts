import { readFileSync } from 'node:fs'
import { beforeAll, describe, expect, it } from 'vitest'
import { useGateway, useUpstream } from '../support/fixture.ts'
import { freePort, sluice } from '../support/gateway.ts'
import { keySetOf, sign, signingKey } from '../support/identity-provider.ts'
import {
  gateway,
  hostOf,
  httpRoute,
  policy,
  secret,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'

/** Every one is unlike anything else, and none may come to light. */
const canary = {
  password: 'canary-password-4711',
  key: 'canary-key-4712',
  jsonKey: 'canary-json-key-4713',
  wrongKey: 'canary-wrong-key-4714',
  wrongPassword: 'canary-wrong-password-4715',
  plainUser: 'canary-plain-password-4716',
  fileUser: 'canary-plain-in-file-4717',
  privateKey: 'canary-private-exponent-4718',
}
const hash = '$2y$05$abcdefghijklmnopqrstuuHIrMEWpUCQe2YqFR3sXwQ75u4od..9q'
const tokens: string[] = []
const bodies: string[] = []

const guarded = (name: string, traffic: Record<string, unknown>) => [
  httpRoute(name, { hostnames: [hostOf(name)], rules: [{ backendRefs: [toBackend('main')] }] }),
  policy(name, `HTTPRoute/${name}`, { traffic }),
]

async function ask(name: string, authorization: string): Promise<number> {
  const { status, body } = await running.send(port, {
    host: hostOf(name),
    headers: { authorization },
  })
  bodies.push(body)
  return status
}

const upstream = useUpstream('upstream', (_, response) => response.end('hello'))
const port = await freePort()
const admin = await freePort()
const stats = await freePort()
const key = await signingKey('one')
const running = useGateway(() => {
  const jwt = (keySet: unknown) => ({
    jwtAuthentication: {
      providers: [{ issuer: 'https://idp', jwks: { inline: JSON.stringify(keySet) } }],
    },
  })
  const leaky = { keys: [{ ...key.jwk, d: canary.privateKey }] }
  return {
    manifests: [
      gateway(port),
      staticBackend('main', upstream.port),
      ...guarded('basic', { basicAuthentication: { users: [`ann:${hash}`] } }),
      ...guarded('plain', { basicAuthentication: { users: [`ann:${canary.plainUser}`] } }),
      ...guarded('file', { basicAuthentication: { secretRef: { name: 'people' } } }),
      secret('people', { '.htaccess': `ann:${hash}\nbob:${canary.fileUser}` }),
      ...guarded('keys', { apiKeyAuthentication: { secretRef: { name: 'keys' } } }),
      secret('keys', { one: canary.key, two: JSON.stringify({ key: canary.jsonKey }) }),
      ...guarded('jwt', jwt(keySetOf(key))),
      ...guarded('leaky', jwt(leaky)),
    ],
    args: ['--admin-address', `127.0.0.1:${admin}`, '--stats-address', `127.0.0.1:${stats}`],
  }
})

beforeAll(async () => {
  const encode = (text: string) => Buffer.from(text).toString('base64')
  const good = await sign(key, { iss: 'https://idp', sub: 'ann' })
  tokens.push(good, `${good.slice(0, -8)}AAAAAAAA`)
  expect(await ask('basic', `Basic ${encode('ann:pw')}`)).toBe(200)
  expect(await ask('basic', `Basic ${encode(`ann:${canary.wrongPassword}`)}`)).toBe(401)
  expect(await ask('basic', `Basic ${canary.password}`)).toBe(401)
  expect(await ask('file', `Basic ${encode(`bob:${canary.fileUser}`)}`)).toBe(401)
  expect(await ask('plain', `Basic ${encode(`ann:${canary.plainUser}`)}`)).toBe(500)
  expect(await ask('keys', `Bearer ${canary.key}`)).toBe(200)
  expect(await ask('keys', `Bearer ${canary.jsonKey}`)).toBe(200)
  expect(await ask('keys', `Bearer ${canary.wrongKey}`)).toBe(401)
  for (const token of tokens) await ask('jwt', `Bearer ${token}`)
  expect(await ask('leaky', `Bearer ${good}`)).toBe(500)
})

/** Where something that should stay hidden shows; as it is, or as a client encodes it. */
function found(text: string): string[] {
  const signatures = tokens.map((token) => token.split('.')[2] ?? '')
  const hidden = [...Object.values(canary), hash, ...signatures]
  const encoded = hidden.flatMap((value) => [
    value,
    Buffer.from(value).toString('base64').replace(/=+$/, ''),
    Buffer.from(`ann:${value}`).toString('base64').replace(/=+$/, ''),
  ])
  return encoded.filter((value) => text.includes(value))
}

const get = async (address: string) => (await fetch(address)).text()

describe('credentials of a running gateway', () => {
  it('would be found by these searches', () => {
    expect(found(`x${canary.key}x`)).toEqual([canary.key])
  })

  it('are in no answer', () => {
    expect(found(bodies.join('\n'))).toEqual([])
  })

  it('are in no configuration dump', async () => {
    const dump = await get(`http://127.0.0.1:${admin}/config_dump`)
    expect(dump).toContain('apiKeyAuthentication')
    expect(found(dump)).toEqual([])
  })

  it('are in no metric', async () => {
    const metrics = await get(`http://127.0.0.1:${stats}/metrics`)
    expect(metrics).toContain('APIKeyAuth')
    expect(found(metrics)).toEqual([])
  })

  it('are in no status, event or explanation', async () => {
    for (const command of [['status'], ['log', '-o', 'json'], ['log']]) {
      const { stdout } = await sluice(...command, '--log-file', running.logFile)
      expect(stdout).toContain('people')
      expect(found(stdout)).toEqual([])
    }
  })

  it('are in no file of the log and in no output of the process', async () => {
    await running.stop()
    for (const suffix of ['', '-wal', '-shm']) {
      let bytes = ''
      try {
        bytes = readFileSync(`${running.logFile}${suffix}`, 'latin1')
      } catch {
        // SQLite removes these two when it has closed the file.
      }
      expect(found(bytes)).toEqual([])
    }
    expect(running.stdout).toContain('http.status=401')
    expect(found(running.stdout)).toEqual([])
    expect(found(running.stderr)).toEqual([])
  })
})

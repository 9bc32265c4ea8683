import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { useFixture, useGateway } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { aiBackend, gateway, policy, routeByPath, secret } from '../support/manifests.ts'
import { startRedisServer } from '../support/redis-server.ts'
import { completes, startVendorA } from '../support/vendors/vendor-a.ts'
import { waitFor } from '../support/wait-for.ts'

const folder = mkdtempSync(join(tmpdir(), 'sluice-answers-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const keyFile = join(folder, 'key')
writeFileSync(keyFile, 'a secret of all proxies')

const a = useFixture(startVendorA)
const redis = useFixture(() => startRedisServer('p@ss'))
const ports = [await freePort(), await freePort()] as const

for (const port of ports) {
  useGateway(() => ({
    manifests: [
      gateway(port),
      secret('keys', { ann: 'key-of-ann' }),
      aiBackend(
        'own',
        { provider: { vendorA: {}, host: '127.0.0.1', port: a.port } },
        { ai: { cache: { ttl: '1h' } } },
      ),
      routeByPath('own'),
      policy('keys', 'HTTPRoute/own', {
        traffic: { apiKeyAuthentication: { secretRef: { name: 'keys' } } },
      }),
    ],
    args: ['--session-key-file', keyFile],
    env: { SLUICE_ANSWER_STORE: `redis://:p%40ss@127.0.0.1:${redis.port}/3` },
  }))
}

/** Asks one of the gateways. */
async function ask(at: 0 | 1, content: string): Promise<{ text: string; isHit: boolean }> {
  const response = await fetch(`http://127.0.0.1:${ports[at]}/own/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer key-of-ann' },
    body: JSON.stringify({ model: 'gpt-4o', messages: [{ role: 'user', content }] }),
  })
  expect(response.status).toBe(200)
  const isHit = response.headers.get('cache-status')?.includes('hit') === true
  return { text: await response.text(), isHit }
}

/** Asks until the server has one more value, and returns its name. */
async function storedBy(at: 0 | 1, content: string): Promise<string> {
  const known = new Set(redis.values.keys())
  let count = 0
  return waitFor('a stored answer', async () => {
    // The same question would be served from memory.
    await ask(at, `${content} ${++count}`)
    return [...redis.values.keys()].find((name) => !known.has(name))
  })
}

describe('answers on a server that several proxies share', () => {
  it('are served by another proxy, sealed, and bound to their requests', async () => {
    a.answer = completes('Hello from A')
    await storedBy(0, 'warm up')
    await storedBy(1, 'warm up')
    const first = await ask(0, 'one')
    await waitFor(
      'the hit of the other proxy',
      async () => (await ask(1, 'one')).isHit || undefined,
    )
    expect((await ask(1, 'one')).text).toBe(first.text)
    for (const [name, { value, ttl }] of redis.values) {
      expect(name).toMatch(/^3 sluice:answer:1:[\w-]{43}$/)
      expect(value.includes('Hello')).toBe(false)
      expect(ttl).toBeGreaterThan(3_500_000)
    }
    // An answer at the place of another one is none.
    const known = new Set(redis.values.keys())
    await ask(0, 'two')
    const name = await waitFor('the name', () =>
      [...redis.values.keys()].find((one) => !known.has(one)),
    )
    const [other] = known
    const moved = other === undefined ? undefined : redis.values.get(other)
    if (moved !== undefined) redis.values.set(name, moved)
    const asked = a.calls.length
    expect((await ask(1, 'two')).isHit).toBe(false)
    expect(a.calls).toHaveLength(asked + 1)
  })

  it('are not waited for if the server is silent or gone, and are back after it', async () => {
    redis.isSilent = true
    expect((await ask(0, 'silent')).isHit).toBe(false)
    redis.isSilent = false
    redis.drop()
    expect((await ask(0, 'gone')).isHit).toBe(false)
    await storedBy(0, 'back')
    expect((await ask(0, 'gone')).isHit).toBe(true)
  })
})

/** Answers of models on a real Redis server, which several proxies share. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { RespClient } from '../../src/gateway/backends/ai/answers/resp-client.ts'
import { useFixture, useFolder, useGateway } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { aiBackend, gateway, policy, routeByPath, secret } from '../support/manifests.ts'
import { describeWithParts } from '../support/parts.ts'
import { startRealRedis } from '../support/real-redis.ts'
import { completes, startVendorA } from '../support/vendors/vendor-a.ts'
import { waitFor } from '../support/wait-for.ts'

const ports = [await freePort(), await freePort(), await freePort()] as const

describeWithParts(['redis'], 'answers on Redis', () => {
  const folder = useFolder('sluice-answers-')
  const keyFile = join(folder, 'key')
  writeFileSync(keyFile, 'a secret of all proxies')
  const redis = useFixture(
    () => startRealRedis('p@ss'),
    (server) => server.remove(),
  )
  const a = useFixture(startVendorA)

  for (const port of ports) {
    // The last one has a wrong password.
    const password = port === ports[2] ? 'other' : 'p%40ss'
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
      args: ['--session-key-file', keyFile, '--workers', '1'],
      env: { SLUICE_ANSWER_STORE: `redis://default:${password}@127.0.0.1:${redis.port}/3` },
    }))
  }

  async function ask(at: 0 | 1 | 2, content: string) {
    const response = await fetch(`http://127.0.0.1:${ports[at]}/own/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: 'Bearer key-of-ann' },
      body: JSON.stringify({ model: 'gpt-4o', messages: [{ role: 'user', content }] }),
    })
    expect(response.status).toBe(200)
    const isHit = response.headers.get('cache-status')?.startsWith('sluice; hit') === true
    return { text: await response.text(), isHit }
  }

  let count = 0
  /** Asks one proxy until another one serves its answer. */
  const shared = () =>
    waitFor('an answer of another proxy', async () => {
      const question = `question ${++count}`
      const first = await ask(0, question)
      const again = await ask(1, question)
      return again.isHit && again.text === first.text
    })

  it('are shared and sealed, and expire after their time to live', async () => {
    // Larger than the buffers of sockets.
    a.answer = completes('x'.repeat(700_000))
    await shared()
    const client = new RespClient(new URL(`redis://:p%40ss@127.0.0.1:${redis.port}/3`))
    const text = async (...command: string[]) => (await client.send(...command))?.toString() ?? ''
    const name = await waitFor(
      'the name of an answer',
      async () => (await text('RANDOMKEY')) || undefined,
    )
    expect(name).toMatch(/^sluice:answer:1:[\w-]{43}$/)
    expect(Number(await text('PTTL', name))).toBeGreaterThan(3_500_000)
    expect(await text('GET', name)).toMatch(/^[\w-]+$/)
    // Redis drops the least recently used answers.
    for (let at = 0; at < 30; at++) await ask(0, `flood ${at}`)
    await shared()
  })

  it('are not served while the password is wrong or the server is down, and are served again after a restart', async () => {
    a.answer = completes('Hello from A')
    expect((await ask(2, `question ${count}`)).isHit).toBe(false)
    await redis.kill()
    expect((await ask(0, 'gone')).isHit).toBe(false)
    expect((await ask(0, 'gone')).isHit).toBe(true)
    await redis.restart()
    await shared()
  })
})

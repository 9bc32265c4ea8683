/** Answers of models on NATS, which several proxies share. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { afterAll, expect, it } from 'vitest'
import { useFixture, useGateway } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { aiBackend, gateway, policy, routeByPath, secret } from '../support/manifests.ts'
import { startNatsServer } from '../support/nats-server.ts'
import { completes, startVendorA } from '../support/vendors/vendor-a.ts'
import { eventually, waitFor } from '../support/wait-for.ts'

const folder = mkdtempSync(join(tmpdir(), 'sluice-answers-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const keyFile = join(folder, 'key')
writeFileSync(keyFile, 'a secret of all proxies')

const nats = useFixture(startNatsServer, (server) => server.remove())
const a = useFixture(startVendorA)
const ports = [await freePort(), await freePort()] as const
const stats = `127.0.0.1:${await freePort()}`

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
    args: [
      ...['--session-key-file', keyFile, '--workers', '1'],
      ...(port === ports[0] ? ['--stats-address', stats] : []),
    ],
    env: { SLUICE_ANSWER_STORE: nats.url },
  }))
}

async function ask(at: 0 | 1, content: string): Promise<{ text: string; isHit: boolean }> {
  const response = await fetch(`http://127.0.0.1:${ports[at]}/own/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer key-of-ann' },
    body: JSON.stringify({ model: 'gpt-4o', messages: [{ role: 'user', content }] }),
  })
  expect(response.status).toBe(200)
  const isHit = response.headers.get('cache-status')?.startsWith('sluice; hit') === true
  return { text: await response.text(), isHit }
}

const counted = async (operation: string, result: string): Promise<number> => {
  const text = await (await fetch(`http://${stats}/metrics`)).text()
  const labels = `operation="${operation}",result="${result}"`
  const found = new RegExp(`model_cache_store_requests_total\\{${labels}\\} (\\d+)`).exec(text)
  return Number(found?.[1] ?? 0)
}
const failures = () => counted('get', 'failed')

it('serves answers that another proxy has sealed on NATS, and goes on without the server', async () => {
  a.answer = completes('Hello from A')
  const first = await ask(0, 'one')
  const again = await waitFor('the hit of the other proxy', async () => {
    const answer = await ask(1, 'one')
    // The other proxy asks the provider if the answer has not arrived yet, and then has one of its own.
    return answer.isHit ? answer : undefined
  })
  expect(again.text).toBe(first.text)
  const connection = await connect({ servers: nats.url })
  const manager = await jetstreamManager(connection)
  const { config, state } = await manager.streams.info('KV_sluice_answers')
  expect(config).toMatchObject({ discard: 'old', max_bytes: 256 * 1024 * 1024 })
  // Earlier servers, such as that of Debian, do not expire messages one by one.
  const [major = 0, minor = 0] = (connection.info?.version ?? '').split('.').map(Number)
  const mayExpire = major > 2 || minor >= 11
  expect(config.allow_msg_ttl === true).toBe(mayExpire)
  const { data, subject, ttl } = await waitFor('the sealed answer', () =>
    manager.streams
      .getMessage('KV_sluice_answers', { seq: state.first_seq })
      .catch(() => undefined),
  ).then((message) => ({
    data: message?.string() ?? '',
    subject: message?.subject ?? '',
    ttl: message?.header.get('Nats-TTL'),
  }))
  expect(ttl).toBe(mayExpire ? '3600s' : '')
  expect(subject).toMatch(/^\$KV\.sluice_answers\.1\.[\w-]{43}$/)
  expect(data).toMatch(/^[\w-]+$/)
  expect(Buffer.from(data, 'base64url').includes('Hello')).toBe(false)
  await connection.close()

  a.answer = completes('x'.repeat(800_000))
  await ask(0, 'a long answer')
  await eventually(async () => expect(await counted('set', 'too_large')).toBe(1))
  expect(await counted('set', 'failed')).toBe(0)
  expect((await ask(0, 'a long answer')).isHit).toBe(true)
  a.answer = completes('Hello from A')

  await nats.kill()
  const before = await failures()
  expect((await ask(0, 'two')).isHit).toBe(false)
  await eventually(async () => expect(await failures()).toBeGreaterThan(before))
  expect((await ask(0, 'two')).isHit).toBe(true)
  await nats.restart()
  let count = 0
  await waitFor('answers on the server again', async () => {
    const question = `three ${++count}`
    await ask(0, question)
    return (await ask(1, question)).isHit
  })
})

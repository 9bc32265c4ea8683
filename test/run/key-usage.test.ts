/** `sluice keys list --record-dir`: when keys were used, and what their requests have cost. */
import { hash } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import OpenAI from 'openai'
import { afterAll, expect, it } from 'vitest'
import { useFixture, useGateway } from '../support/fixture.ts'
import { freePort, sluice } from '../support/gateway.ts'
import {
  aiBackend,
  configMap,
  gateway,
  manifest,
  policy,
  routeByPath,
} from '../support/manifests.ts'
import { startVendorA } from '../support/vendors/vendor-a.ts'

const folder = mkdtempSync(join(tmpdir(), 'sluice-key-usage-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const records = join(folder, 'records')
const file = join(folder, 'keys.yaml')
const labels = { keys: 'yes' }
const entry = (key: string) => JSON.stringify({ keyHash: `sha256:${hash('sha256', key)}` })
const keys = configMap('keys', { ann: entry('key-of-ann'), bob: entry('key-of-bob') }, labels)
writeFileSync(file, manifest(keys))

const port = await freePort()
const a = useFixture(startVendorA)
const running = useGateway(() => ({
  args: ['--record', 'all', '--record-dir', records],
  manifests: [
    gateway(port),
    aiBackend('a', { provider: { vendorA: {}, host: '127.0.0.1', port: a.port } }),
    routeByPath('a'),
    keys,
    policy('keys', 'HTTPRoute/a', {
      traffic: { apiKeyAuthentication: { configMapSelector: { matchLabels: labels } } },
    }),
  ],
}))

it('shows the last use, the requests and the cost of each key', async () => {
  const before = new Date().toISOString()
  const client = new OpenAI({ baseURL: `http://127.0.0.1:${port}/a/v1`, apiKey: 'key-of-ann' })
  const messages = [{ role: 'user' as const, content: 'Hello' }]
  for (const model of ['gpt-4o', 'gpt-4o']) {
    await client.chat.completions.create({ model, messages })
  }
  await running.stop()
  const list = await sluice('keys', 'list', '--file', file, '--record-dir', records, '-o', 'json')
  expect([list.code, list.stderr]).toEqual([0, ''])
  const [ann, bob] = JSON.parse(list.stdout) as { usage: Record<string, string | number> }[]
  // 11 and 7 tokens at 2.5 and 10 USD a million, twice.
  expect(ann?.usage).toMatchObject({ requests: 2, costUsd: '0.000195' })
  expect(`${ann?.usage.lastUsed}` >= before).toBe(true)
  expect(bob?.usage).toEqual({ requests: 0, costUsd: '0' })
  const text = await sluice('keys', 'list', '--file', file, '--record-dir', records)
  expect(text.stdout).toMatch(/^NAME .*LAST USED +REQUESTS +USD$/m)
  expect(text.stdout).toMatch(/^bob .* never +0 +0$/m)
})

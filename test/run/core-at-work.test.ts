/**
 * Which kernels of the WebAssembly core run for a request. A module that is loaded before the
 * gateway, in each of its threads, writes down the name of every export that is called; what serves
 * the requests is the gateway as it is shipped.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { freePort, type RunningGateway, startGateway } from '../support/gateway.ts'
import { aiBackend, gateway, httpRoute, manifest, policy, toBackend } from '../support/manifests.ts'
import type { Vendor } from '../support/vendors/vendor.ts'
import { completes, startVendorA } from '../support/vendors/vendor-a.ts'

/** A call through the watched exports costs an append to a file the first time, a flag after that. */
const observer = (file: string) => `
import { appendFileSync } from 'node:fs'
const Original = WebAssembly.Instance
WebAssembly.Instance = class {
  constructor(module, imports) {
    const { exports } = new Original(module, imports)
    const watched = {}
    for (const [name, value] of Object.entries(exports)) {
      let isKnown = false
      watched[name] = typeof value !== 'function' ? value : (...args) => {
        if (!isKnown) appendFileSync(${JSON.stringify(file)}, name + '\\n')
        isKnown = true
        return value(...args)
      }
    }
    this.exports = Object.freeze(watched)
  }
}
`

let folder: string
let running: RunningGateway
let vendor: Vendor
let port: number

const called = () => new Set(readFileSync(join(folder, 'calls'), 'utf8').split('\n'))
const post = (path: string, body: object) =>
  fetch(`http://127.0.0.1:${port}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
const messages = [{ role: 'user', content: 'Write to ann@example.com' }]

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-core-'))
  writeFileSync(join(folder, 'calls'), '')
  const module = join(folder, 'observer.mjs')
  writeFileSync(module, observer(join(folder, 'calls')))
  port = await freePort()
  vendor = await startVendorA()
  const target = { host: '127.0.0.1', port: vendor.port }
  const routes = {
    '/v1/chat/completions': 'Completions',
    '/v1/messages/count_tokens': 'VendorCTokenCount',
  }
  const promptGuard = { request: [{ regex: { builtins: ['Email'], action: 'Mask' } }] }
  const toModels = { backendRefs: [toBackend('models')] }
  const byHeader = { headers: [{ name: 'x-team', value: 'a' }] }
  running = await startGateway({
    manifests: {
      'all.yaml': manifest(
        gateway(port),
        aiBackend(
          'models',
          { provider: { vendorA: {}, ...target } },
          { ai: { routes, promptGuard }, auth: { key: 'k' } },
        ),
        httpRoute('models', { rules: [toModels] }),
        httpRoute('plain', { rules: [{ matches: [byHeader] }] }),
        httpRoute('limited', { rules: [{ matches: [{ path: { value: '/limited' } }] }] }),
        policy('plain', 'HTTPRoute/plain', { traffic: { directResponse: { status: 204 } } }),
        policy('limited', 'HTTPRoute/limited', {
          traffic: {
            directResponse: { status: 204 },
            rateLimit: { local: [{ requests: 1, unit: 'Hours' }] },
          },
        }),
      ),
    },
    env: { NODE_OPTIONS: `--import=${pathToFileURL(module)}` },
  })
})
afterAll(async () => {
  await running?.dispose()
  await vendor?.close()
  rmSync(folder, { recursive: true, force: true })
})

it('[design.wasm] heads are read and headers matched, patterns masked, tokens counted and limits taken in the WebAssembly module', async () => {
  const rate = ['rate_take', 'rate_take_at']
  for (const name of ['head_request', 'stream_push', 'tokens_count', ...rate]) {
    expect(called()).not.toContain(name)
  }

  const headers = { 'x-team': 'a' }
  expect((await fetch(`http://127.0.0.1:${port}/`, { headers })).status).toBe(204)
  expect(called()).toContain('head_request')
  expect([...called()].some((name) => /^match_(route|request)$/.test(name))).toBe(true)
  expect(called()).not.toContain('stream_push')

  vendor.next.push(completes('Done'))
  expect((await post('/v1/chat/completions', { model: 'gpt-4o', messages })).status).toBe(200)
  expect(vendor.calls.at(-1)?.body.messages).toEqual([
    { role: 'user', content: 'Write to <EMAIL_ADDRESS>' },
  ])
  expect(called()).toContain('stream_push')
  expect(called()).not.toContain('tokens_count')

  const counted = await post('/v1/messages/count_tokens', { model: 'gpt-4o', messages })
  expect(await counted.json()).toEqual({ input_tokens: expect.any(Number) })
  expect(called()).toContain('tokens_count')
  expect(rate.some((name) => called().has(name))).toBe(false)

  const limited = async () => (await fetch(`http://127.0.0.1:${port}/limited`)).status
  expect([await limited(), await limited()]).toEqual([204, 429])
  expect(rate.some((name) => called().has(name))).toBe(true)
})

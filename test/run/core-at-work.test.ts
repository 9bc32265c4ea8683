/**
 * Which kernels of the WebAssembly core run for a request. A module that is loaded before the
 * gateway, in each of its threads, writes down the name of every export that is called; what serves
 * the requests is the gateway as it is shipped.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, it } from 'vitest'
import { useFixture, useFolder, useGateway } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { aiBackend, gateway, httpRoute, policy, toBackend } from '../support/manifests.ts'
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

const called = () => new Set(readFileSync(join(folder, 'calls'), 'utf8').split('\n'))
const post = (path: string, body: object) =>
  fetch(`http://127.0.0.1:${port}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
const messages = [{ role: 'user', content: 'Write to ann@example.com' }]

const folder = useFolder('sluice-core-')
const module = join(folder, 'observer.mjs')
writeFileSync(join(folder, 'calls'), '')
writeFileSync(module, observer(join(folder, 'calls')))
const port = await freePort()
const vendor = useFixture(startVendorA)
useGateway(() => {
  const target = { host: '127.0.0.1', port: vendor.port }
  const routes = {
    '/v1/chat/completions': 'Completions',
    '/v1/messages/count_tokens': 'VendorCTokenCount',
  }
  const promptGuard = { request: [{ regex: { builtins: ['Email'], action: 'Mask' } }] }
  const toModels = { backendRefs: [toBackend('models')] }
  const byHeader = { headers: [{ name: 'x-team', value: 'a' }] }
  return {
    manifests: [
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
    ],
    env: { NODE_OPTIONS: `--import=${pathToFileURL(module)}` },
  }
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

  // A vendor that does not count leaves it to the gateway.
  vendor.next.push((_, response) => void response.writeHead(404).end('{}'))
  const counted = await post('/v1/messages/count_tokens', { model: 'gpt-4o', messages })
  expect(await counted.json()).toEqual({ input_tokens: expect.any(Number) })
  expect(called()).toContain('tokens_count')
  expect(rate.some((name) => called().has(name))).toBe(false)

  const limited = async () => (await fetch(`http://127.0.0.1:${port}/limited`)).status
  expect([await limited(), await limited()]).toEqual([204, 429])
  expect(rate.some((name) => called().has(name))).toBe(true)
})

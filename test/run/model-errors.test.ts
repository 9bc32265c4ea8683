/** What goes wrong between client, gateway and vendor, and what is refused before anything is served. */
import type { ServerResponse } from 'node:http'
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { useFixture, useGateway } from '../support/fixture.ts'
import { freePort, sluice } from '../support/gateway.ts'
import { aiBackend, gateway, httpRoute, manifest, policy, toBackend } from '../support/manifests.ts'
import { startWebhook } from '../support/vendors/guard-services.ts'
import { openStream, sendEvent, type Vendor } from '../support/vendors/vendor.ts'
import { chunk, completes, completion, startVendorA } from '../support/vendors/vendor-a.ts'
import { sayPiece, says, startMessage, startVendorC } from '../support/vendors/vendor-c.ts'
import { waitFor } from '../support/wait-for.ts'

const routes = {
  '/v1/chat/completions': 'Completions',
  '/v1/messages': 'Messages',
  '/v1/responses': 'Responses',
  '/v1/embeddings': 'Embeddings',
}

const at = (vendor: Vendor) => ({ host: '127.0.0.1', port: vendor.port })

const reached = (name: string, ai: object, settings: object = {}, policies: object = {}) => [
  aiBackend(name, ai as Record<string, unknown>, { ai: { routes, ...settings }, ...policies }),
  httpRoute(name, {
    rules: [
      {
        matches: [{ path: { type: 'PathPrefix', value: `/${name}` } }],
        backendRefs: [toBackend(name)],
      },
    ],
  }),
]

const fields = (count: number) =>
  Array.from({ length: count }, (_, at) => ({ field: `x_${at}`, value: at }))
const aliases = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`alias-${at}`, `m-${at}`]))
const patterns = (count: number) =>
  Array.from({ length: count }, (_, at) => ({ regex: { matches: [`word${at}\\b`] } }))

const port = await freePort()
const nobody = await freePort()
const a = useFixture(startVendorA)
const c = useFixture(startVendorC)
const hook = useFixture(startWebhook)
const running = useGateway(() => {
  const toA = () => ({ provider: { vendorA: {}, ...at(a) } })
  const toC = () => ({ provider: { vendorC: {}, ...at(c) } })
  return {
    manifests: [
      gateway(port),
      ...reached('a', toA()),
      ...reached('c', toC()),
      ...reached('gone', { provider: { vendorA: {}, host: '127.0.0.1', port: nobody } }),
      ...reached('slow', toA(), {}, { http: { requestTimeout: '100ms' } }),
      ...reached('held', toA(), {
        promptGuard: {
          response: [
            {
              webhook: {
                backendRef: { group: 'sluice.dev', kind: 'GatewayBackend', name: 'hook' },
              },
            },
          ],
        },
      }),
      {
        apiVersion: 'sluice.dev/v1alpha1',
        kind: 'GatewayBackend',
        metadata: { name: 'hook' },
        spec: { static: at(hook) },
      },
      ...reached('limited', toA()),
      policy('limited', 'HTTPRoute/limited', {
        traffic: { rateLimit: { local: [{ tokens: 1, unit: 'Hours' }] } },
      }),
      ...reached('full', toA(), {
        defaults: fields(64),
        overrides: [...fields(63), { field: 'user', value: 'gateway' }],
        modelAliases: aliases(64),
        promptGuard: { request: patterns(8), response: patterns(8) },
      }),
      ...reached('system', toC(), { defaults: [{ field: 'system', value: 'Be brief.' }] }),
    ],
  }
})

beforeEach(() => {
  for (const one of [a, c, hook]) {
    one.calls.length = 0
    one.next.length = 0
    one.aborted = 0
  }
  a.answer = completes('Hello ', 'from A')
  c.answer = says('Hello ', 'from C')
})

const base = (name: string) => `http://127.0.0.1:${port}/${name}`
const openai = (name: string) =>
  new OpenAI({ baseURL: `${base(name)}/v1`, apiKey: 'client-key', maxRetries: 0 })
const anthropic = (name: string) =>
  new Anthropic({ baseURL: base(name), apiKey: 'client-key', maxRetries: 0 })
const ask = { model: 'm-1', messages: [{ role: 'user' as const, content: 'Hello' }] }
const askC = { ...ask, max_tokens: 100 }
const formats = {
  '/v1/chat/completions': ask,
  '/v1/messages': askC,
  '/v1/responses': { model: 'm-1', input: 'x' },
}
const post = (name: string, path: keyof typeof formats, more: object = {}, init: object = {}) =>
  fetch(`${base(name)}${path}`, {
    method: 'POST',
    body: JSON.stringify({ ...formats[path], ...more }),
    ...init,
  })

/** What the gateway says in each format. */
function errorOf(path: keyof typeof formats, message: unknown) {
  return path === '/v1/messages'
    ? { type: 'error', error: { type: expect.any(String), message } }
    : { error: { type: expect.any(String), message } }
}

const paths = Object.keys(formats) as (keyof typeof formats)[]

async function collect<Item>(stream: AsyncIterable<Item>): Promise<Item[]> {
  const items: Item[] = []
  for await (const item of stream) items.push(item)
  return items
}

const sends =
  (type: string, body: string | Uint8Array, headers: Record<string, string> = {}, status = 200) =>
  (_: unknown, response: ServerResponse): void => {
    response.writeHead(status, { 'content-type': type, ...headers })
    response.end(body)
  }

describe('errors of the gateway', () => {
  it('come in the format of the client where nobody can be asked', async () => {
    for (const path of paths) {
      const gone = await post('gone', path)
      expect(gone.status).toBe(503)
      expect(gone.headers.get('content-type')).toBe('application/json')
      expect(await gone.json()).toMatchObject(errorOf(path, expect.stringContaining('connection')))
    }
    await expect(anthropic('gone').messages.create(askC)).rejects.toBeInstanceOf(
      Anthropic.InternalServerError,
    )
  })

  it('come in the format of the client where the vendor takes too long', async () => {
    a.answer = () => {}
    for (const path of paths) {
      const slow = await post('slow', path)
      expect(slow.status).toBe(504)
      expect(await slow.json()).toMatchObject(errorOf(path, expect.stringContaining('timeout')))
    }
  })

  it('come in the format of the client where its tokens are spent', async () => {
    await openai('limited').chat.completions.create(ask)
    await waitFor('the limit', async () => (await post('limited', '/v1/messages')).status === 429)
    for (const path of paths) {
      const spent = await post('limited', path)
      expect(spent.status).toBe(429)
      expect(spent.headers.get('retry-after')).toMatch(/^\d+$/)
      expect(await spent.json()).toMatchObject(errorOf(path, 'rate limit exceeded'))
    }
    await expect(openai('limited').chat.completions.create(ask)).rejects.toBeInstanceOf(
      OpenAI.RateLimitError,
    )
  })
})

describe('errors of the vendor', () => {
  it('keep their status, whatever they are written in', async () => {
    for (const path of paths) {
      for (const [name, vendor] of [
        ['a', a],
        ['c', c],
      ] as const) {
        vendor.next.push(sends('text/html', '<h1>Bad day</h1>', {}, 403))
        const html = await post(name, path)
        expect(html.status).toBe(403)
        expect(await html.json()).toMatchObject(errorOf(path, expect.stringContaining('Bad day')))
        vendor.next.push(sends('text/plain', '', {}, 418))
        const empty = await post(name, path)
        expect(empty.status).toBe(418)
        expect(await empty.json()).toMatchObject(errorOf(path, expect.any(String)))
      }
    }
  })

  it('are made of good statuses with bodies that are none', async () => {
    const bad = ['', 'no JSON', '[1]', '"text"', '{"half":', '<html></html>']
    for (const path of paths) {
      for (const body of bad) {
        for (const [name, vendor] of [
          ['a', a],
          ['c', c],
        ] as const) {
          vendor.next.push(sends('application/json', body))
          const answer = await post(name, path)
          expect(answer.status).toBe(502)
          expect(await answer.json()).toMatchObject(errorOf(path, expect.any(String)))
        }
      }
    }
  })

  it('are made of answers that are too long', async () => {
    const long = Buffer.alloc(33 * 1024 * 1024, 'x')
    a.next.push(sends('application/json', long))
    const whole = await post('a', '/v1/chat/completions')
    expect(whole.status).toBe(502)
    expect(await whole.json()).toMatchObject(
      errorOf('/v1/chat/completions', expect.stringContaining('too large')),
    )
    // A small answer that becomes a large one.
    a.next.push(sends('application/json', gzipSync(long), { 'content-encoding': 'gzip' }))
    expect((await post('a', '/v1/messages')).status).toBe(502)
    a.next.push((_, response) => {
      openStream(response)
      sendEvent(response, chunk('m', { content: 'Hel' }))
      response.write(`data: ${'x'.repeat(33 * 1024 * 1024)}`)
    })
    const stream = anthropic('a').messages.stream(askC)
    await expect(stream.finalMessage()).rejects.toThrow(/too large/)
    await waitFor('the vendor to be left', () => a.aborted >= 1)
  })

  it('are told in a stream that is cut off, as an event of the format', async () => {
    c.next.push((_, response) => {
      startMessage('m', response)
      sayPiece('Hel', response)
      response.write('event: conte', () => response.destroy())
    })
    await expect(anthropic('c').messages.stream(askC).finalMessage()).rejects.toThrow(/cut off/)
    for (const name of ['a', 'c']) {
      a.next.push((_, response) => {
        openStream(response)
        sendEvent(
          response,
          { type: 'response.output_text.delta', sequence_number: 0, delta: 'x' },
          'response.output_text.delta',
        )
        response.write('data: {', () => response.destroy())
      })
      c.next.push((_, response) => {
        startMessage('m', response)
        sayPiece('Hel', response)
        response.destroy()
      })
      const text = await (await post(name, '/v1/responses', { stream: true })).text()
      const events = [...text.matchAll(/^data: (.*)$/gm)].map(([, data]) => data ?? '')
      expect(JSON.parse(events.at(-1) ?? '')).toMatchObject({
        type: expect.stringMatching(/error|failed/),
      })
      expect(events.at(-1)).toContain('cut off')
    }
  })

  it('that come in a stream reach a client of another format as its own', async () => {
    c.next.push((_, response) => {
      startMessage('m', response)
      const error = { type: 'overloaded_error', message: 'too much to do' }
      sendEvent(response, { type: 'error', error }, 'error')
      response.end()
    })
    const stream = await openai('c').chat.completions.create({ ...ask, stream: true })
    await expect(collect(stream)).rejects.toThrow(/too much to do/)
  })
})

describe('answers that are compressed', () => {
  const codings = {
    gzip: gzipSync,
    deflate: deflateSync,
    br: brotliCompressSync,
    zstd: zstdCompressSync,
  }
  const whole = JSON.stringify(completion('m-1', 'Hello from A'))
  const events = [
    chunk('m-1', { role: 'assistant', content: 'Hello ' }),
    chunk('m-1', { content: 'from A' }, 'stop'),
  ]
  const stream = `${events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')}data: [DONE]\n\n`

  it('are read, whole and as streams, natively and translated', async () => {
    for (const [coding, compress] of Object.entries(codings)) {
      const headers = { 'content-encoding': coding }
      a.answer = (call, response) =>
        call.body.stream === true
          ? sends('text/event-stream', compress(stream), headers)(call, response)
          : sends('application/json', compress(whole), headers)(call, response)
      const native = await openai('a').chat.completions.create(ask)
      expect(native.choices[0]?.message.content, coding).toBe('Hello from A')
      const message = await anthropic('a').messages.create(askC)
      expect(message.content, coding).toEqual([{ type: 'text', text: 'Hello from A' }])
      const streamed = await openai('a').chat.completions.stream(ask).finalContent()
      expect(streamed, coding).toBe('Hello from A')
      expect(await anthropic('a').messages.stream(askC).finalText(), coding).toBe('Hello from A')
    }
  })

  it('by a coding that is not known, or that are damaged, are errors', async () => {
    a.next.push(sends('application/json', whole, { 'content-encoding': 'sausage' }))
    expect((await post('a', '/v1/chat/completions')).status).toBe(502)
    const half = gzipSync(whole).subarray(0, 20)
    a.next.push(sends('application/json', half, { 'content-encoding': 'gzip' }))
    expect((await post('a', '/v1/messages')).status).toBe(502)
  })

  it('are errors of the vendor too', async () => {
    const error = gzipSync(JSON.stringify({ error: { message: 'no such model', type: 'x' } }))
    a.next.push(sends('application/json', error, { 'content-encoding': 'gzip' }, 404))
    await expect(anthropic('a').messages.create(askC)).rejects.toThrow(/no such model/)
  })
})

describe('a client that goes away', () => {
  it('cancels the work of the vendor, whether the answer streams, is awaited whole or is held', async () => {
    for (const [name, stream] of [
      ['a', false],
      ['a', true],
      ['held', true],
    ] as const) {
      a.aborted = 0
      a.calls.length = 0
      a.next.push((_, response) => {
        if (!stream) return
        openStream(response)
        sendEvent(response, chunk('m', { content: 'Hel' }))
      })
      const leaving = new AbortController()
      const pending = post(name, '/v1/chat/completions', { stream }, { signal: leaving.signal })
      await waitFor('the call', () => a.calls.length === 1)
      leaving.abort()
      await expect(pending.then((answer) => answer.text())).rejects.toThrow(/abort/)
      await waitFor('the vendor to be left', () => a.aborted === 1)
    }
    expect(hook.calls).toEqual([])
  })
})

describe('settings', () => {
  it('[limit.prompt-guards] [limit.defaults-and-overrides] work as many as are allowed', async () => {
    a.answer = completes('word0 word7 word8')
    const answer = await openai('full').chat.completions.create({
      model: 'alias-63',
      messages: [{ role: 'user', content: 'word0 word7 word8' }],
    })
    expect(answer.choices[0]?.message.content).toBe('<masked> <masked> word8')
    expect(a.calls.at(-1)?.body).toMatchObject({
      model: 'm-63',
      user: 'gateway',
      x_0: 0,
      x_63: 63,
      messages: [{ content: '<masked> <masked> word8' }],
    })
  })

  it('[AIPromptEnrichment.systemField] set the system field of a vendor that has no such role', async () => {
    await anthropic('system').messages.create(askC)
    expect(c.calls.at(-1)?.body.system).toBe('Be brief.')
    await anthropic('system').messages.create({ ...askC, system: 'Be long.' })
    expect(c.calls.at(-1)?.body.system).toBe('Be long.')
  })
})

describe('objects that break a rule', () => {
  const guard = (direction: string, ...items: object[]) => ({ promptGuard: { [direction]: items } })
  const regex = { builtins: ['Email'] }
  const webhook = { backendRef: { name: 'hook', port: 80 } }
  const broken: Readonly<Record<string, object>> = {
    'empty-ai': {},
    'empty-guard': { promptGuard: {} },
    'no-guards': { promptGuard: { request: [] } },
    'nine-guards': guard('request', ...patterns(9)),
    'nine-answers': guard('response', ...patterns(9)),
    'request-none': guard('request', {}),
    'request-two': guard('request', { regex, webhook }),
    'request-three': guard('request', { webhook, vendorAModeration: {} }),
    'response-none': guard('response', {}),
    'response-two': guard('response', { regex, webhook }),
    'response-moderation': guard('response', { vendorAModeration: {} }),
    'empty-response': guard('request', { regex, response: {} }),
    'low-status': guard('request', { regex, response: { statusCode: 199 } }),
    'unknown-builtin': guard('request', { regex: { builtins: ['Iban'] } }),
    'unknown-action': guard('request', { regex: { ...regex, action: 'Drop' } }),
    'many-defaults': { defaults: fields(65) },
    'no-defaults': { defaults: [] },
    'many-overrides': { overrides: fields(65) },
    'many-aliases': { modelAliases: aliases(65) },
  }
  /** The same of whole backends. */
  const one = { vendorA: {} }
  const named = (name: string, more: object = {}) => ({ name, vendorA: {}, ...more })
  const brokenBackends: Readonly<Record<string, Record<string, unknown>>> = {
    'neither-way': {},
    'both-ways': { provider: one, groups: [{ providers: [named('a')] }] },
    'no-vendor': { provider: { host: 'example.com' } },
    'two-vendors': { provider: { vendorA: {}, vendorC: {} } },
    'named-none': { groups: [{ providers: [{ name: 'a' }] }] },
    'named-two': { groups: [{ providers: [named('a', { vendorC: {} })] }] },
    'same-names': { groups: [{ providers: [named('a')] }, { providers: [named('a')] }] },
    'empty-policies': { groups: [{ providers: [named('a', { policies: {} })] }] },
  }
  const messages = new Map<string, string>()

  beforeAll(async () => {
    running.write(
      'broken.yaml',
      manifest(
        ...Object.entries(broken).map(([name, ai]) =>
          aiBackend(name, { provider: { vendorA: {}, ...at(a) } }, { ai }),
        ),
        ...Object.entries(brokenBackends).map(([name, ai]) => aiBackend(name, ai)),
      ),
    )
    await waitFor('the refusals', async () => {
      const { stdout } = await sluice('status', '--log-file', running.logFile, '-o', 'json')
      const { objects } = JSON.parse(stdout) as {
        objects: { name: string; status: { conditions?: { status: string; message: string }[] } }[]
      }
      for (const { name, status } of objects) {
        const refused = status.conditions?.find((one) => one.status === 'False')
        if (refused !== undefined) messages.set(name, refused.message)
      }
      const all = [...Object.keys(broken), ...Object.keys(brokenBackends)]
      return all.every((name) => messages.has(name))
    })
  })

  it.each([
    ['[AIBackend.exactlyOneOf] neither a provider nor groups', 'neither-way', /spec\.ai/],
    ['[AIBackend.exactlyOneOf] a provider and groups', 'both-ways', /spec\.ai/],
    ['[LLMProvider.exactlyOneOf] a provider of no vendor', 'no-vendor', /spec\.ai\.provider/],
    ['[LLMProvider.exactlyOneOf] a provider of two vendors', 'two-vendors', /spec\.ai\.provider/],
    ['[NamedLLMProvider.exactlyOneOf] a named one of no vendor', 'named-none', /providers\[0\]/],
    ['[NamedLLMProvider.exactlyOneOf] a named one of two vendors', 'named-two', /providers\[0\]/],
    ['[AIBackend.groups.uniqueNames] a name in two groups', 'same-names', /ai\.groups: .*unique/],
    [
      '[BackendWithAI.atLeastOneOf] policies that say nothing',
      'empty-policies',
      /providers\[0\]\.policies/,
    ],
    ['[BackendAI.atLeastOneOf] an empty object', 'empty-ai', /spec\.policies\.ai/],
    ['[AIPromptGuard.atLeastOneOf] guards of neither direction', 'empty-guard', /ai\.promptGuard/],
    ['[limit.prompt-guards] no guard', 'no-guards', /promptGuard\.request/],
    ['[limit.prompt-guards] nine guards', 'nine-guards', /promptGuard\.request/],
    ['[limit.prompt-guards] nine guards of answers', 'nine-answers', /promptGuard\.response/],
    ['[PromptguardRequest.exactlyOneOf] a guard that is none', 'request-none', /request\[0\]/],
    ['[PromptguardRequest.exactlyOneOf] a guard that is two', 'request-two', /request\[0\]/],
    [
      '[PromptguardRequest.exactlyOneOf] a guard that is two others',
      'request-three',
      /request\[0\]/,
    ],
    [
      '[PromptguardResponse.exactlyOneOf] a guard of answers that is none',
      'response-none',
      /response\[0\]/,
    ],
    [
      '[PromptguardResponse.exactlyOneOf] a guard of answers that is two',
      'response-two',
      /response\[0\]/,
    ],
    [
      '[PromptguardResponse.exactlyOneOf] moderation of answers',
      'response-moderation',
      /vendorAModeration/,
    ],
    [
      '[CustomResponse.atLeastOneOf] an answer that says nothing',
      'empty-response',
      /request\[0\]\.response/,
    ],
    ['[CustomResponse.statusCode] a status that is none', 'low-status', /statusCode/],
    ['[Regex.builtins] data that nobody knows', 'unknown-builtin', /builtins\[0\]/],
    ['[Regex.action] an action that nobody knows', 'unknown-action', /action/],
    ['[limit.defaults-and-overrides] too many defaults', 'many-defaults', /ai\.defaults/],
    ['[limit.defaults-and-overrides] defaults without any', 'no-defaults', /ai\.defaults/],
    ['[limit.defaults-and-overrides] too many overrides', 'many-overrides', /ai\.overrides/],
    ['[limit.defaults-and-overrides] too many aliases', 'many-aliases', /ai\.modelAliases/],
  ])('refuses %s, and names the field', (_id, name, path) => {
    expect(messages.get(name)).toMatch(path)
  })

  it('do not keep the others from being served', async () => {
    const answer = await openai('a').chat.completions.create(ask)
    expect(answer.choices[0]?.message.content).toBe('Hello from A')
  })
})

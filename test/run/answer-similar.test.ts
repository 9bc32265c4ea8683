/** Stored answers to similar requests, which an embeddings backend finds. */
import { join } from 'node:path'
import OpenAI from 'openai'
import { beforeEach, describe, expect, it } from 'vitest'
import { useFixture, useFolder, useGateway } from '../support/fixture.ts'
import { freePort, sluice } from '../support/gateway.ts'
import { aiBackend, gateway, manifest, policy, routeByPath, secret } from '../support/manifests.ts'
import { json } from '../support/vendors/vendor.ts'
import { completes, startVendorA } from '../support/vendors/vendor-a.ts'
import { eventually, waitFor } from '../support/wait-for.ts'

const a = useFixture(startVendorA)
const embeddings = useFixture(startVendorA)
const port = await freePort()
const stats = `127.0.0.1:${await freePort()}`
const records = join(useFolder('sluice-similar-'), 'records')

const provider = (at: number) => ({ provider: { vendorA: {}, host: '127.0.0.1', port: at } })
const semantic = {
  backendRef: { group: 'sluice.dev', kind: 'GatewayBackend', name: 'vectors' },
  model: 'text-embedding-3-small',
  threshold: 92,
}

function cached(name: string, ai: object = {}) {
  return [
    aiBackend(name, provider(a.port), { ai: { cache: { semantic }, ...ai } }),
    routeByPath(name),
    policy(`keys-${name}`, `HTTPRoute/${name}`, {
      traffic: { apiKeyAuthentication: { secretRef: { name: 'keys' } } },
    }),
  ]
}

const manifests = (masked: string) => [
  gateway(port),
  secret('keys', { ann: 'key-of-ann', bob: 'key-of-bob' }),
  aiBackend('vectors', provider(embeddings.port), { auth: { key: 'sk-of-vectors' } }),
  ...cached('own'),
  ...cached('shared', { cache: { scope: 'Shared', semantic } }),
  ...cached('sized', { cache: { semantic: { ...semantic, dimensions: 32 } } }),
  ...cached('brief', { cache: { semantic: { ...semantic, timeout: '50ms' } } }),
  ...cached('masked', {
    promptGuard: {
      request: [{ regex: { builtins: ['Email'] } }],
      response: [{ regex: { matches: [masked] } }],
    },
  }),
  ...cached('placeholders', {
    promptGuard: { request: [{ regex: { builtins: ['Email'], action: 'Reversible' } }] },
  }),
  ...cached('lost', {
    cache: { semantic: { ...semantic, backendRef: { ...semantic.backendRef, name: 'nowhere' } } },
  }),
]

const running = useGateway(() => ({
  manifests: manifests('token-\\d{4}'),
  args: [
    ...['--workers', '1', '--stats-address', stats],
    ...['--record', 'all', '--record-dir', records],
  ],
}))

/** The vector counts words, so that texts with the same words are similar. */
function vectorOf(text: string): number[] {
  const vector = new Array<number>(256).fill(0)
  for (const word of text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []) {
    let hash = 0
    for (const char of word) hash = (hash * 31 + (char.codePointAt(0) ?? 0)) % 256
    vector[hash] = (vector[hash] ?? 0) + 1
  }
  return vector
}

const reply = (embedding: readonly unknown[]) => ({
  object: 'list',
  data: [{ object: 'embedding', index: 0, embedding }],
  model: 'text-embedding-3-small',
  usage: { prompt_tokens: 8, total_tokens: 8 },
})

beforeEach(() => {
  for (const vendor of [a, embeddings]) {
    vendor.calls.length = 0
    vendor.next.length = 0
  }
  a.answer = completes('Hello')
  embeddings.answer = ({ body }, response) =>
    json(response, 200, reply(vectorOf(String(body.input))))
})

let count = 0
/** A word that no other test uses. */
function newWord(): string {
  const letters = [...`${count++}`].map((digit) => 'abcdefghij'[Number(digit)])
  return `topic${letters.join('')}`
}
const user = <Content>(content: Content) => ({ role: 'user' as const, content })
const question = (word: string) => `How do I reset the password of my ${word} account today`
const similar = (word: string) => `How do I reset the password of my ${word} account`
const ask = (text: string, more: object = {}) => ({
  model: 'gpt-4o',
  messages: [user(text)],
  ...more,
})

async function post(
  name: string,
  body: object,
  headers: Readonly<Record<string, string>> = {},
  path = '/v1/chat/completions',
) {
  const response = await fetch(`http://127.0.0.1:${port}/${name}${path}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      authorization: 'Bearer key-of-ann',
      ...headers,
    },
    body: JSON.stringify(body),
  })
  const text = await response.text()
  const status = response.headers.get('cache-status') ?? ''
  const cache = status.includes('detail=similar')
    ? 'similar'
    : (/^sluice; (?:fwd=)?(\w+)/.exec(status)?.[1] ?? 'none')
  return { status: response.status, text, cache }
}

describe('answers to similar requests', () => {
  it('are served without a call of the provider, and are not stored again', async () => {
    const word = newWord()
    const first = await post('own', ask(question(word)))
    expect(first.cache).toBe('miss')
    const again = await post('own', ask(similar(word)))
    expect(again).toEqual({ ...first, cache: 'similar' })
    expect(a.calls).toHaveLength(1)
    const [call] = embeddings.calls
    expect(call?.headers.authorization).toBe('Bearer sk-of-vectors')
    expect(call?.body).toEqual({ model: 'text-embedding-3-small', input: question(word) })
    // Similar to the second request, but not to the one whose answer is stored.
    expect((await post('own', ask(`How do I reset the password of my ${word}`))).cache).toBe('miss')
    // An equal request needs no embedding.
    const asked = embeddings.calls.length
    expect((await post('own', ask(question(word)))).cache).toBe('hit')
    expect(embeddings.calls).toHaveLength(asked)
    const sized = await post('sized', ask(question(word)))
    expect(sized.cache).toBe('miss')
    expect(embeddings.calls.at(-1)?.body.dimensions).toBe(32)
  })

  it('are not served if anything but the last message differs', async () => {
    const word = newWord()
    const tool = { type: 'function', function: { name: 'get', parameters: { type: 'object' } } }
    await post('own', ask(question(word)))
    const system = { role: 'system', content: 'Be brief.' }
    const before = [user('Hi'), { role: 'assistant', content: 'Hello' }]
    const text = similar(word)
    const others = {
      model: ask(text, { model: 'gpt-4o-mini' }),
      system: { model: 'gpt-4o', messages: [system, user(text)] },
      conversation: { model: 'gpt-4o', messages: [...before, user(text)] },
      tools: ask(text, { tools: [tool] }),
      temperature: ask(text, { temperature: 0 }),
      format: ask(text, { response_format: { type: 'json_object' } }),
      stream: ask(text, { stream: true }),
      user: ask(text, { user: 'other' }),
    }
    for (const [name, body] of Object.entries(others)) {
      expect((await post('own', body)).cache, name).toBe('miss')
    }
    const key = { authorization: 'Bearer key-of-bob' }
    expect((await post('own', ask(text), key)).cache).toBe('miss')
    expect((await post('own', ask(text), { 'openai-organization': 'other' })).cache).toBe('miss')
    expect((await post('own', ask(text))).cache).toBe('similar')
    await post('shared', ask(question(word)))
    expect((await post('shared', ask(text), key)).cache).toBe('similar')
  })

  it('are not served in a conversation with other earlier messages', async () => {
    const word = newWord()
    const about = (name: string, text: string) => ({
      model: 'gpt-4o',
      messages: [
        user(`Who leads ${name}?`),
        { role: 'assistant', content: 'A person' },
        user(text),
      ],
    })
    const old = `how old is this person of ${word} today`
    await post('own', about('One', old))
    expect((await post('own', about('Two', old))).cache).toBe('miss')
    expect((await post('own', about('One', `how old is this person of ${word}`))).cache).toBe(
      'similar',
    )
  })

  it('are not served to messages with other numbers, signs, negations or order', async () => {
    const word = newWord()
    const text = (middle: string) =>
      `Tell me in one short sentence whether the ${word} is ${middle} here`
    const pairs = [
      ['worth 15 euros', 'worth 16 euros'],
      ['7 + 5', '7 - 5'],
      ['safe', 'not safe'],
      ['sicher', 'nicht sicher'],
      ['from Oslo to Rome', 'from Rome to Oslo'],
    ] as const
    for (const [one, other] of pairs) {
      await post('own', ask(text(one)))
      expect((await post('own', ask(text(other)))).cache, other).toBe('miss')
    }
    // Only case and punctuation differ.
    expect((await post('own', ask(text('Safe!')))).cache).toBe('similar')
  })

  it('are not served if the last message has more than a text, or is not a message of the user', async () => {
    const url = { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } }
    const call = { id: 'call_1', type: 'function', function: { name: 'get', arguments: '{}' } }
    const called = { role: 'assistant', content: null, tool_calls: [call] }
    const result = { role: 'tool', tool_call_id: 'call_1', content: 'The result' }
    const bodies = [
      { model: 'gpt-4o', messages: [user([{ type: 'text', text: 'What is this?' }, url])] },
      { model: 'gpt-4o', messages: [user('Get it'), called, result] },
      ask('long '.repeat(500)),
    ]
    for (const body of bodies) expect((await post('own', body)).cache).toBe('miss')
    expect(embeddings.calls).toHaveLength(0)
    const word = newWord()
    const parts = (text: string) => ask('', { messages: [user([{ type: 'text', text }])] })
    await post('own', parts(question(word)))
    expect((await post('own', parts(similar(word)))).cache).toBe('similar')
  })

  it('are found in every format, and as streams', async () => {
    const word = newWord()
    const formats = {
      '/v1/messages': (text: string) => ({ ...ask(text), max_tokens: 20 }),
      '/v1/responses': (input: string) => ({ model: 'gpt-4o', input, store: false }),
    }
    for (const [path, body] of Object.entries(formats)) {
      expect((await post('own', body(question(word)), {}, path)).cache).toBe('miss')
      expect((await post('own', body(similar(word)), {}, path)).cache, path).toBe('similar')
    }
    const baseURL = `http://127.0.0.1:${port}/own/v1`
    const client = new OpenAI({ baseURL, apiKey: 'key-of-ann', maxRetries: 0 })
    a.answer = completes('Hel', 'lo')
    const asked = a.calls.length
    for (const text of [question(word), similar(word)]) {
      let said = ''
      const stream = await client.chat.completions.create({ ...ask(text), stream: true })
      for await (const { choices } of stream) said += choices[0]?.delta.content ?? ''
      expect(said).toBe('Hello')
    }
    expect(a.calls).toHaveLength(asked + 1)
  })

  it('respect the cache headers of clients, and are not served for stored errors', async () => {
    const word = newWord()
    a.next.push((_, response) => json(response, 500, { error: { message: 'broken' } }))
    expect((await post('own', ask(question(word)))).status).toBe(500)
    expect((await post('own', ask(similar(word)))).cache).toBe('miss')
    const other = newWord()
    await post('own', ask(question(other)))
    const send = (headers: Readonly<Record<string, string>>) =>
      post('own', ask(similar(other)), headers)
    expect(
      (await send({ 'x-sluice-cache': 'exact', 'cache-control': 'only-if-cached' })).status,
    ).toBe(504)
    expect((await send({ 'cache-control': 'min-fresh=301' })).cache).toBe('miss')
  })

  it('are found with only-if-cached', async () => {
    const word = newWord()
    await post('own', ask(question(word)))
    const only = { 'cache-control': 'only-if-cached' }
    expect((await post('own', ask(similar(word)), only)).cache).toBe('similar')
    expect((await post('own', ask(`Another ${newWord()}`), only)).status).toBe(504)
  })
})

describe('an embeddings backend', () => {
  it('gets texts after guards have masked them, and no texts with placeholders', async () => {
    const text = `Write a short mail to ann@example.com about the ${newWord()} of the year`
    await post('masked', ask(text))
    expect(embeddings.calls.map(({ body }) => body.input)).toEqual([
      text.replace('ann@example.com', '<EMAIL_ADDRESS>'),
    ])
    embeddings.calls.length = 0
    expect((await post('placeholders', ask(text))).cache).toBe('miss')
    expect(embeddings.calls).toHaveLength(0)
  })

  it('causes a miss instead of an error if it fails, is slow or sends no vector', async () => {
    const bad = [reply(new Array(8).fill(0)), reply(['NaN', 1]), { error: { message: 'no' } }]
    for (const body of bad) {
      const word = newWord()
      embeddings.next.push((_, response) => json(response, 200, body))
      const asked = embeddings.calls.length
      // A backend that has failed is not called for some time.
      await waitFor('the question', async () => {
        expect(await post('own', ask(question(`${word} ${newWord()}`)))).toMatchObject({
          status: 200,
          cache: 'miss',
        })
        return embeddings.calls.length > asked
      })
      expect((await post('own', ask(similar(word)))).cache).toBe('miss')
    }
    const { promise, resolve } = Promise.withResolvers<void>()
    embeddings.answer = (_, response) => void promise.then(() => response.end())
    await waitFor('the slow question', async () => {
      const asked = embeddings.calls.length
      expect((await post('brief', ask(question(newWord())))).cache).toBe('miss')
      return embeddings.calls.length > asked
    })
    resolve()
    expect(await post('lost', ask(question(newWord())))).toMatchObject({
      status: 200,
      cache: 'miss',
    })
  })
})

describe('hits by similarity', () => {
  it('are recorded with their similarity and the cost of the embedding', async () => {
    await waitFor('a hit', async () => {
      const word = newWord()
      await post('shared', ask(question(word)))
      return (await post('shared', ask(similar(word)))).cache === 'similar'
    })
    const decision = await eventually(async () => {
      const { stdout } = await sluice('decisions', '--record-dir', records, '-o', 'json')
      const all = stdout
        .split('\n')
        .slice(0, -1)
        .map((line) => JSON.parse(line))
      const found = all.findLast(({ details }) => details['model.cache.similarity'] !== undefined)
      expect(found.route.route).toContain('shared')
      return found
    })
    expect(decision.details).toMatchObject({
      'model.cache': 'hit',
      'model.cache.embedding.provider': 'openai',
      'model.cache.embedding.model': 'text-embedding-3-small',
      'model.cache.embedding.tokens': 8,
      'model.cache.embedding.cost': '0.00000016',
    })
    expect(decision.details['model.cache.similarity']).toBeGreaterThan(0.8)
    const { id } = decision
    const told = await sluice('explain', 'request', '--id', id, '--record-dir', records)
    expect(told.stdout).toMatch(
      /cost +0 USD +\(a stored answer to a similar request \(0\.9\d+\) that had cost/,
    )
    expect(told.stdout).toMatch(
      /embedding +0\.00000016 USD +\(8 tokens of text-embedding-3-small\)/,
    )
    const { stdout: csv } = await sluice(
      ...['spend', '--record-dir', records, '--by', 'route,model,status', '-o', 'csv'],
    )
    expect(csv).toMatch(/default\/shared,text-embedding-3-small,exact,[1-9]/)
    const metrics = await (await fetch(`http://${stats}/metrics`)).text()
    expect(metrics).toMatch(/sluice_model_cache_embeddings_total\{result="made",.*\} [1-9]/)
    expect(metrics).toMatch(/sluice_model_cache_embeddings_total\{result="failed",.*\} [1-9]/)
    expect(metrics).toMatch(/gen_ai_client_cost_usd_total\{.*text-embedding-3-small.*\}/)
  })

  it('are not served after a change of the guards', async () => {
    const word = newWord()
    await post('masked', ask(question(word)))
    expect((await post('masked', ask(similar(word)))).cache).toBe('similar')
    await running.write('all.yaml', manifest(...manifests('to\\w+-\\d{4}')))
    await waitFor(
      'the new guard',
      async () => (await post('masked', ask(question(word)))).cache === 'miss',
    )
  })
})

import type { ServerResponse } from 'node:http'
import { beforeEach, describe, expect, it } from 'vitest'
import { useFixture, useGateway } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import {
  aiBackend,
  gateway,
  policy,
  routeByPath,
  secret,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import { acts, startWebhook } from '../support/vendors/guard-services.ts'
import type { VendorCall } from '../support/vendors/vendor.ts'
import { completes, failsA, startVendorA } from '../support/vendors/vendor-a.ts'

const a = useFixture(startVendorA)
const hook = useFixture(startWebhook)
const port = await freePort()

const reversible = {
  regex: { builtins: ['Email', 'ApiKey'], matches: ['name "[^"]+"'], action: 'Reversible' },
}
const atVendor = () => ({ vendorA: {}, host: '127.0.0.1', port: a.port })
const withKeys = (name: string) => [
  routeByPath(name),
  policy(`keys-${name}`, `HTTPRoute/${name}`, {
    traffic: { apiKeyAuthentication: { secretRef: { name: 'keys' }, mode: 'Optional' } },
  }),
]
const guarded = (name: string, response?: object, more: object = {}) => [
  aiBackend(
    name,
    { provider: atVendor() },
    {
      ai: {
        promptGuard: { request: [reversible], ...(response && { response: [response] }) },
        ...more,
      },
      auth: { key: 'k' },
    },
  ),
  ...withKeys(name),
]
const provider = (name: string, promptGuard: object) => ({
  providers: [{ name, ...atVendor(), policies: { ai: { promptGuard } } }],
})

useGateway(() => ({
  // Another worker may not have the stored answer yet.
  args: ['--workers', '1'],
  manifests: [
    gateway(port),
    secret('keys', { ann: 'key-of-ann', bob: 'key-of-bob' }),
    staticBackend('hook', hook.port),
    ...guarded('plain'),
    ...guarded('masked', { regex: { builtins: ['Email', 'PhoneNumber'] } }),
    ...guarded('judged', { webhook: { backendRef: toBackend('hook') } }),
    ...guarded('stored-judged', { webhook: { backendRef: toBackend('hook') } }, { cache: {} }),
    ...guarded('stored', undefined, { cache: { scope: 'Shared' } }),
    aiBackend(
      'several',
      {
        groups: [
          provider('one', { request: [reversible] }),
          provider('two', { response: [{ regex: { builtins: ['Email'] } }] }),
        ],
      },
      { auth: { key: 'k' } },
    ),
    ...withKeys('several'),
  ],
}))

/** Answers with the texts of the request, cut into pieces of a few characters, and a text of its own. */
function echoes(call: VendorCall, response: ServerResponse): void {
  const { messages, input } = call.body as { messages?: unknown; input?: unknown }
  const said = JSON.stringify(messages ?? input)
  const found = said.match(/\[[A-Z_]+:[\w-]+\]|<masked>/g) ?? []
  const text = `You said ${found.join(', ')}. Ask help@example.org.`
  completes(...(text.match(/.{1,7}/gs) ?? []))(call, response)
}

beforeEach(() => {
  a.calls.length = 0
  a.answer = echoes
  hook.answer = acts({ reason: 'fine' })
})

type Build = (text: string, stream: boolean) => readonly [path: string, body: object]
const formats: Readonly<Record<string, Build>> = {
  Completions: (content, stream) => [
    '/v1/chat/completions',
    { model: 'gpt-4o', messages: [{ role: 'user', content }], stream },
  ],
  Messages: (content, stream) => [
    '/v1/messages',
    { model: 'gpt-4o', max_tokens: 99, messages: [{ role: 'user', content }], stream },
  ],
  Responses: (input, stream) => ['/v1/responses', { model: 'gpt-4o', input, stream, store: false }],
  GenerateContent: (text, stream) => [
    `/v1beta/models/gpt-4o:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    { contents: [{ role: 'user', parts: [{ text }] }] },
  ],
  Converse: (text, stream) => [
    `/model/gpt-4o/converse${stream ? '-stream' : ''}`,
    { messages: [{ role: 'user', content: [{ text }] }] },
  ],
}

async function post(name: string, [path, body]: readonly [string, object], key = 'key-of-ann') {
  const response = await fetch(`http://127.0.0.1:${port}/${name}${path}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'anthropic-version': '2023-06-01',
      ...(key !== '' && { authorization: `Bearer ${key}` }),
    },
    body: JSON.stringify(body),
  })
  const text = await response.text()
  expect(response.status, text).toBe(200)
  return text
}

/** The texts of an answer, whose events may cut them anywhere. */
const textsOf = (answer: string): string =>
  [...answer.matchAll(/"(?:content|text|delta)":\s*("(?:[^"\\]|\\.)*")/g)]
    .map(([, json = '""']) => JSON.parse(json) as string)
    .join('')

const chat = (content: string, key?: string, name = 'plain') =>
  post(name, formats.Completions?.(content, false) ?? ['', {}], key)
const sentToVendor = () => a.calls.map(({ text }) => text).join('\n')
const placeholderIn = (text: string) => /\[[A-Z_]+:[\w-]+\]/.exec(text)?.[0] ?? 'none'

describe('reversible masks', () => {
  for (const [format, build] of Object.entries(formats)) {
    it(`restore texts in whole and streamed answers of ${format}, which the vendor never sees`, async () => {
      for (const name of ['plain', 'masked', 'judged']) {
        for (const stream of [false, true]) {
          const said = 'I am ann@example.com, name "A☃\\n\tn", and bob@example.com'
          const answer = await post(name, build(said, stream))
          const own = name === 'masked' ? '<EMAIL_ADDRESS>' : 'help@example.org'
          expect(textsOf(answer), `${name} ${stream}`).toContain(
            `You said ann@example.com, name "A☃\\n\tn", bob@example.com. Ask ${own}.`,
          )
          expect(answer).not.toContain('[EMAIL_ADDRESS:')
        }
      }
      expect(a.calls).toHaveLength(6)
      expect(sentToVendor()).not.toMatch(/ann@|bob@|A☃/)
    })
  }

  it('give equal texts one placeholder, and do not restore long texts', async () => {
    await chat('ann@example.com ann@example.com bob@example.com')
    const [first, second, third] = sentToVendor().match(/\[[A-Z_]+:[\w-]+\]/g) ?? []
    expect(second).toBe(first)
    expect(third).not.toBe(first)
    expect(await chat(`name "${'long'.repeat(100)}"`)).toContain('You said <masked>.')
  })

  it('restore placeholders that come back in later requests of the same client only', async () => {
    await chat('I am ann@example.com')
    const placeholder = placeholderIn(sentToVendor())
    a.calls.length = 0
    const loop = {
      model: 'gpt-4o',
      messages: [
        { role: 'user', content: 'Look it up' },
        {
          role: 'assistant',
          content: null,
          tool_calls: [
            {
              id: 'c1',
              type: 'function',
              function: { name: 'find', arguments: JSON.stringify({ mail: placeholder }) },
            },
          ],
        },
        { role: 'tool', tool_call_id: 'c1', content: 'found' },
      ],
    }
    for (const stream of [false, true]) {
      const answer = await post('plain', ['/v1/chat/completions', { ...loop, stream }])
      expect(textsOf(answer)).toContain('You said ann@example.com.')
    }
    expect(textsOf(await chat(`Again: ${placeholder}`))).toContain('You said ann@example.com.')
    expect(sentToVendor()).toContain(placeholder)
    expect(sentToVendor()).not.toContain('ann@')
    for (const key of ['key-of-bob', '']) {
      expect(textsOf(await chat(`What is ${placeholder}?`, key))).toContain(
        `You said ${placeholder}.`,
      )
    }
    // A changed placeholder opens nothing, even if its text decodes to the same bytes.
    const forged = placeholder.replace(/.\]$/, (end) => (end === 'A]' ? 'B]' : 'A]'))
    expect(textsOf(await chat(forged))).toContain(`You said ${forged}.`)
  })

  it('mask a secret in a text that only looks like a placeholder', async () => {
    const key = `ghp_${'a1B2'.repeat(10)}`
    expect(textsOf(await chat(`It is [TOKEN:${key}]`))).toContain(`You said [TOKEN:${key}].`)
    expect(sentToVendor()).not.toContain(key)
  })

  it('restore texts of clients without credentials in the same answer only', async () => {
    expect(textsOf(await chat('I am ann@example.com', ''))).toContain('You said ann@example.com.')
    const placeholder = placeholderIn(sentToVendor())
    expect(textsOf(await chat(`Again ${placeholder}`, ''))).toContain(`You said ${placeholder}.`)
  })

  it('restore nothing for a client that knows a placeholder of another one, also from the cache', async () => {
    for (let at = 0; at < 2; at++) {
      const answer = await chat('I am cached@example.com', 'key-of-ann', 'stored')
      expect(textsOf(answer)).toContain('You said cached@example.com.')
    }
    expect(a.calls).toHaveLength(1)
    const placeholder = placeholderIn(sentToVendor())
    const known = await chat(`I am ${placeholder}`, 'key-of-bob', 'stored')
    expect(textsOf(known)).toContain(`You said ${placeholder}.`)
  })

  it('show the placeholders to guards that judge a stored answer again', async () => {
    for (const stream of [false, true]) {
      const said = formats.Completions?.('I am hit+1@example.com (c*)', stream) ?? ['', {}]
      a.calls.length = 0
      hook.calls.length = 0
      for (let at = 0; at < 2; at++) {
        const answer = await post('stored-judged', said)
        expect(textsOf(answer)).toContain('You said hit+1@example.com.')
      }
      expect([a.calls.length, hook.calls.length]).toEqual([1, 2])
      const [first, second] = hook.calls.map(({ text }) => text)
      expect(first).toContain('[EMAIL_ADDRESS:')
      expect(second).toBe(first)
    }
  })

  it('keep no guard of another provider from masking, which gets the request after a failure', async () => {
    a.next.push(failsA(500, 'oh no'))
    const build = formats.Completions
    const answer = await post('several', build?.('I am ann@example.com', true) ?? ['', {}])
    expect(a.calls).toHaveLength(2)
    expect(textsOf(answer)).toContain('Ask <EMAIL_ADDRESS>.')
  })
})

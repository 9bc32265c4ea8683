import assert from 'node:assert/strict'
import { familyCatalog } from '../../../src/engines/messages/catalog/catalog.ts'
import { clientFormats } from '../../../src/engines/messages/formats/index.ts'
import type { JsonObject } from '../../../src/engines/messages/json/json.ts'
import { LlmError } from '../../../src/engines/messages/llm-error.ts'
import { parseBody } from '../../../src/engines/messages/request/body.ts'
import { ClientBody } from '../../../src/engines/messages/request/client-body.ts'
import {
  type OutgoingRequest,
  outgoingRequest,
  passedOnRequest,
  settleRequest,
} from '../../../src/engines/messages/request/outgoing.ts'
import { detailsInBytes, readWholeResponse } from '../../../src/engines/messages/response/whole.ts'
import vendorA from '../../../src/gateway/backends/ai/providers/vendor-a/provider.ts'
import vendorC from '../../../src/gateway/backends/ai/providers/vendor-c/provider.ts'
import { FieldPairs } from '../../../src/ground/exchange/memory-message.ts'
import { answerOf, Random, requestOf } from '../../core/texts/messages.ts'
import { defineTarget } from '../support/target.ts'

const routes = ['Completions', 'Messages', 'Responses', 'Embeddings'] as const
type Route = (typeof routes)[number]

const contextOf = (route: Route) => ({
  vendor: route === 'Messages' ? vendorC : vendorA,
  provider: { vendor: route === 'Messages' ? 'vendorC' : 'vendorA' } as const,
  settings: undefined,
  catalog: familyCatalog,
  catalogId: '',
  isPathFixed: false,
  headers: new FieldPairs([]),
  path: '/',
  newId: () => 'id',
})

/** The result, or the message of a refusal. */
function resultOf<Result>(work: () => Result): Result | string {
  try {
    return work()
  } catch (error) {
    if (error instanceof LlmError) return error.message
    throw error
  }
}

/** Numbers that a double cannot represent keep their text, which depends on the other numbers of a body. */
const inDoubles = (value: unknown): unknown => JSON.parse(JSON.stringify(value))

/** What the provider gets is what it would get if the whole body was read. */
function checkRequest(bytes: Buffer, route: Route): void {
  const format = clientFormats[route]
  const client = resultOf(() => new ClientBody(bytes, format))
  const parsed = resultOf(() => parseBody(bytes).body)
  if (typeof client === 'string' || typeof parsed === 'string') {
    assert.equal(client, parsed)
    return
  }
  assert.deepEqual(client.whole, parsed)
  const fields = client.fieldsToPassOn(format)
  if (fields === undefined) return
  for (const [name, value] of Object.entries(fields)) {
    assert.deepEqual(inDoubles(value), inDoubles(parsed[name]))
  }
  const context = contextOf(route)
  const passedOn = passedOnRequest(fields, format, context)
  if (passedOn === undefined) return
  const settled = settleRequest(parsed, format, context.provider, undefined)
  assert.deepEqual(passedOn, outgoingRequest(settled, format, context))
  const renamed = client.withModel('another "model"')
  if (renamed === undefined) return
  assert.deepEqual(parseBody(renamed).body, { ...parsed, model: 'another "model"' })
}

/** Details are those of the whole answer, which is relayed as it came. */
function checkAnswer(bytes: Buffer, route: Route): void {
  const plan = { kind: 'native', path: '/' } as const
  const request: OutgoingRequest = {
    format: clientFormats[route],
    plan,
    model: 'model',
    body: undefined,
    translation: undefined,
    isStream: false,
    hidesUsage: false,
  }
  const found = detailsInBytes(request, bytes)
  if (found === undefined) return
  const context = { created: 0, newId: () => 'id', request: {} }
  const read = readWholeResponse(request, bytes.toString('utf8'), () => undefined, context)
  assert.deepEqual(
    { isChanged: read.isChanged, details: read.details },
    { isChanged: false, details: found },
  )
}

const tool = { id: 'call_1', type: 'function', function: { name: 'a', arguments: '{"b":[1,2e3]}' } }
const handmade: readonly JsonObject[] = [
  {
    model: 'gpt-4o',
    messages: [
      { role: 'assistant', content: null, tool_calls: [tool] },
      { role: 'tool', tool_call_id: 'call_1', content: [{ type: 'text', text: 'x\ny' }] },
      {
        role: 'user',
        content: [{ type: 'image_url', image_url: { url: 'data:image/jpg;base64,' } }],
      },
    ],
    stream: true,
    stream_options: { include_usage: true },
    max_tokens: 5,
    temperature: 0.5,
  },
  { model: 'm', input: ['a', 'b'], encoding_format: 'float', dimensions: 512 },
  {
    model: 'gpt-4o',
    choices: [{ index: 0, message: { role: 'assistant', content: 'é' } }],
    usage: { prompt_tokens: 1, completion_tokens: 2, prompt_tokens_details: { cached_tokens: 1 } },
    service_tier: 'default',
  },
  { error: { message: 'no', code: 'x' }, choices: [] },
]

const samples = [1, 2, 3].flatMap((seed) =>
  (['Completions', 'Messages', 'Responses'] as const).flatMap((format) => {
    const random = new Random(seed)
    return [requestOf(format, random), answerOf(format, random)]
  }),
)

export default defineTarget({
  about: 'messages of models that are passed on as bytes are those that need no change',
  samples: [...handmade, ...samples].flatMap((one) => [
    JSON.stringify(one),
    JSON.stringify(one, undefined, 2),
  ]),
  words: [
    '"model":"gpt-5"',
    '"mod\\u0065l":"a"',
    '"choices":[]',
    '"choices":null',
    '"usage":{"total_tokens":7}',
    '"tool_call_id":"a b"',
    '"id":"x__thought__y"',
    '"thinking":{}',
    '"url":"data:image\\/jpg;"',
    '"url":"data:image/jpg,"',
    '"encrypted_content":"sluice.e30"',
    '\\ud83d',
    '\u0001',
    '\ufeff',
    '1e999',
    '12345678901234567890',
    '-0',
    '01',
    '1.',
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    '"',
  ],
  start: () => ({
    check(input) {
      for (const route of routes) {
        checkRequest(input, route)
        checkAnswer(input, route)
      }
    },
  }),
})

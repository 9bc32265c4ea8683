/** What the package for translation does with input that it cannot read. */
import { describe, expect, it } from 'vitest'
import {
  LlmError,
  requestTexts,
  textsOfResponse,
  translateRequest,
  usageOf,
} from '../../src/engines/messages/index.ts'

const levels = 20_000
const nested = JSON.parse('['.repeat(levels) + ']'.repeat(levels))
const deep = { messages: [{ role: 'user', content: nested }], output: nested }
const parameters = { a: nested }
const deepTool = {
  messages: [],
  tools: [{ type: 'function', function: { name: 'f', parameters } }],
}
const call = (run: unknown, ...values: readonly unknown[]) =>
  (run as (...all: readonly unknown[]) => unknown)(...values)

describe('the package for translation', () => {
  it.each([
    [translateRequest, null, 'Completions', 'messages'],
    [translateRequest, [], 'Completions', 'messages'],
    [translateRequest, { messages: [] }, 'completions', 'messages'],
    [translateRequest, { messages: [] }, 'constructor', 'messages'],
    [translateRequest, { messages: [] }, 'Embeddings', 'messages'],
    [translateRequest, { messages: [] }, 'Completions', 'unknown'],
    [translateRequest, { messages: [] }, 'Completions', 'constructor'],
    [translateRequest, deepTool, 'Completions', 'generate-content'],
    [requestTexts, null],
    [requestTexts, deep],
    [textsOfResponse, null, 'Messages'],
    [textsOfResponse, deep, 'Responses'],
    [textsOfResponse, {}, 'Embeddings'],
    [usageOf, null, 'Completions'],
    [usageOf, {}, 'toString'],
  ])('throws only LlmError: %o %o', (run, ...values) => {
    expect(() => call(run, ...values)).toThrow(LlmError)
  })

  it('takes null for options that are omitted', () => {
    const body = { model: 'm', messages: [{ role: 'user', content: 'x' }] }
    expect(call(translateRequest, body, 'Completions', 'completions', null)).toMatchObject({
      model: 'm',
    })
  })
})

describe('items of requests that have no other meaning', () => {
  const input = (item: object) => ({ model: 'm', input: [{ role: 'user', content: 'hi' }, item] })
  const message = {
    type: 'agent_message',
    id: 'a',
    author: 'sub',
    content: [{ type: 'input_text', text: 'result' }],
  }

  it.each(['completions', 'messages', 'converse', 'generate-content', 'responses'] as const)(
    'are sent as text in the format %s, and guards read it',
    (provider) => {
      const { body } = translateRequest(input(message), 'Responses', provider)
      expect(JSON.stringify(body)).toContain('result')
      expect(requestTexts(input(message)).map(({ content }) => content)).toContain('result')
    },
  )

  it('are refused by name if their text is encrypted, or if they have none', () => {
    const encrypted = { ...message, content: [{ type: 'encrypted_content' }] }
    const refused = (item: object) => () =>
      translateRequest(input(item), 'Responses', 'completions')
    expect(refused(encrypted)).toThrow('input[1].content[0]: parts of type encrypted_content')
    expect(refused({ type: 'mcp_call' })).toThrow('input[1]: items of type mcp_call')
  })
})

/** Caches, places of messages, choices of tools and other parts of requests that translations must not lose. */
import { describe, it } from 'vitest'
import { type Case, expectMembers, title, useModels, user } from './model-rules-rig.ts'

const { sent, refused } = useModels()

const hour = { cache_control: { type: 'ephemeral', ttl: '1h' } }
const minutes = { cache_control: { type: 'ephemeral' } }
const claude = 'anthropic.claude-sonnet-4-5-v1:0'
const schema = { type: 'object', properties: { city: { type: 'string' } } }
const chatTools = [{ type: 'function', function: { name: 'f', parameters: schema } }]
const text = (value: string, more: object = {}) => ({ type: 'text', text: value, ...more })
const chatSystem = (more: object) => [{ role: 'system', content: [text('s', more)] }, ...user]

describe('cache points', () => {
  it.each<Case>([
    [
      'f',
      'messages',
      claude,
      { system: [text('s', hour)] },
      { system: [{ text: 's' }, { cachePoint: { type: 'default', ttl: '1h' } }] },
    ],
    [
      'f',
      'messages',
      'amazon.nova-pro-v1:0',
      { system: [text('s', hour)] },
      { system: [{ text: 's' }, { cachePoint: { type: 'default' } }] },
    ],
    [
      'f',
      'messages',
      'meta.llama3-3-70b-instruct-v1:0',
      { cache_control: { type: 'ephemeral' } },
      { 'messages.0.content': [{ text: 'Hello' }, { cachePoint: { type: 'default' } }] },
    ],
    [
      'f',
      'messages',
      claude,
      hour,
      { 'messages.0.content': [{ text: 'Hello' }, { cachePoint: { type: 'default', ttl: '1h' } }] },
    ],
    [
      'f',
      'chat',
      claude,
      { messages: chatSystem(minutes) },
      { system: [{ text: 's' }, { cachePoint: { type: 'default' } }] },
    ],
    [
      'f',
      'chat',
      claude,
      { tools: [{ ...chatTools[0], ...hour }] },
      { 'toolConfig.tools.1': { cachePoint: { type: 'default', ttl: '1h' } } },
    ],
    [
      'c',
      'chat',
      'claude-sonnet-4-5',
      { messages: chatSystem(hour) },
      { system: [text('s', hour)] },
    ],
    [
      'c',
      'chat',
      'claude-sonnet-4-5',
      { messages: [{ role: 'user', content: [text('q', minutes)] }] },
      { 'messages.0.content': [text('q', minutes)] },
    ],
    [
      'c',
      'chat',
      'claude-sonnet-4-5',
      { tools: [{ ...chatTools[0], ...minutes }] },
      { 'tools.0.cache_control': { type: 'ephemeral' } },
    ],
    ['c', 'chat', 'claude-sonnet-4-5', minutes, { cache_control: { type: 'ephemeral' } }],
    [
      'e',
      'chat',
      'claude-opus-5',
      { messages: [{ role: 'user', content: 'q', ...hour }] },
      { 'messages.0.content': [text('q', hour)] },
    ],
  ])(title, async (vendor, client, model, fields, expected) => {
    expectMembers(await sent(vendor, client, model, fields), expected)
  })
})

describe('messages of the system between others', () => {
  const later = [...user, { role: 'assistant', content: 'Hi' }, { role: 'user', content: 'And?' }]
  const inPlace = { messages: [...later, { role: 'system', content: 'From now on' }] }
  const system = [text('From now on')]

  it.each<Case>([
    [
      'a',
      'messages',
      'gpt-5.1',
      inPlace,
      { 'messages.3': { role: 'system', content: 'From now on' }, 'messages.0.role': 'user' },
    ],
    [
      'c',
      'chat',
      'claude-opus-4-8',
      inPlace,
      { 'messages.3': { role: 'system', content: system }, system: undefined },
    ],
    [
      'c',
      'responses',
      'claude-opus-5',
      { input: inPlace.messages },
      { 'messages.3': { role: 'system', content: system }, system: undefined },
    ],
    [
      'c',
      'chat',
      'claude-opus-4-8',
      { messages: [later[0], later[1], { role: 'developer', content: 'From now on' }, later[2]] },
      { 'messages.3': { role: 'system', content: system } },
    ],
    ['c', 'chat', 'claude-sonnet-4-5', inPlace, { system: 'From now on', 'messages.3': undefined }],
    [
      'd',
      'chat',
      'gemini-2.5-flash',
      inPlace,
      { systemInstruction: { parts: [{ text: 'From now on' }] } },
    ],
    ['f', 'messages', 'anthropic.claude-opus-4-8', inPlace, { system: [{ text: 'From now on' }] }],
  ])(title, async (vendor, client, model, fields, expected) => {
    expectMembers(await sent(vendor, client, model, fields), expected)
  })
})

describe('choices of tools', () => {
  const called = [
    ...user,
    { role: 'assistant', content: [{ type: 'tool_use', id: 't1', name: 'f', input: {} }] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't1', content: '' }] },
  ]
  const tools = [{ name: 'f', input_schema: schema }]
  const none = { tool_choice: { type: 'none' } }

  it.each<Case>([
    [
      'c',
      'chat',
      'claude-sonnet-4-5',
      { tool_choice: 'auto', parallel_tool_calls: true },
      { tool_choice: undefined },
    ],
    [
      'c',
      'responses',
      'claude-sonnet-4-5',
      { tool_choice: 'auto', tools: [] },
      { tool_choice: undefined },
    ],
    [
      'a',
      'messages',
      'gpt-5.1',
      { tool_choice: { type: 'auto', disable_parallel_tool_use: true } },
      { tool_choice: undefined, parallel_tool_calls: undefined },
    ],
    ['f', 'messages', claude, { tools, ...none }, { toolConfig: undefined }],
    [
      'f',
      'messages',
      claude,
      { tools, ...none, messages: called },
      {
        'toolConfig.tools.0.toolSpec.name': 'unavailable',
        'messages.2.content.0.toolResult.content': [{ text: '(no output)' }],
      },
    ],
  ])(title, async (vendor, client, model, fields, expected) => {
    expectMembers(await sent(vendor, client, model, fields), expected)
  })
})

describe('search results that the client found', () => {
  const result = {
    type: 'search_result',
    source: 'https://e.test',
    title: 'T',
    content: [text('facts')],
  }
  const beside = { messages: [{ role: 'user', content: [result, text('q')] }] }
  const asText = 'T\nhttps://e.test\nfacts'

  it.each<Case>([
    ['a', 'messages', 'gpt-5.1', beside, { 'messages.0.content.0': text(asText) }],
    ['d', 'messages', 'gemini-2.5-flash', beside, { 'contents.0.parts.0': { text: asText } }],
    [
      'f',
      'messages',
      claude,
      beside,
      {
        'messages.0.content.0': {
          searchResult: { title: 'T', source: 'https://e.test', content: [{ text: 'facts' }] },
        },
      },
    ],
  ])(title, async (vendor, client, model, fields, expected) => {
    expectMembers(await sent(vendor, client, model, fields), expected)
  })
})

describe('settings without which the answer would be another one', () => {
  it.each([
    ['c', 'chat', { n: 2 }, 'n: several choices are not supported'],
    ['f', 'chat', { n: 2 }, 'n: several choices are not supported'],
    ['d', 'chat', { logprobs: true }, 'logprobs: log probabilities are not supported'],
    ['c', 'chat', { logit_bias: { 50: 1 } }, 'logit_bias: biases of tokens are not supported'],
    [
      'c',
      'responses',
      { background: true },
      'background: responses in the background are not supported',
    ],
  ] as const)('are refused by %s in %s: %j', async (vendor, client, fields, message) => {
    await refused(vendor, client, 'some-model', fields, message)
  })
})

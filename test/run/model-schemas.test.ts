/** Schemas of outputs and tools, and what vendors enforce of them. */
import { describe, expect, it } from 'vitest'
import { at, type Case, expectMembers, title, useModels } from './model-rules-rig.ts'

const { sent, refused } = useModels()

const open = {
  type: 'object',
  properties: {
    age: { type: 'integer', minimum: 1, maximum: 99, description: 'In years' },
    tags: { type: 'array', items: { type: 'string', minLength: 2 }, minItems: 2 },
    more: { type: 'object', properties: { a: { oneOf: [{ type: 'string' }, { type: 'null' }] } } },
    node: { $ref: '#/definitions/N' },
  },
  required: ['age'],
  definitions: { N: { type: 'object', properties: { next: { $ref: '#/definitions/N' } } } },
}
const closed = {
  type: 'object',
  properties: {
    age: { type: 'integer', description: 'In years\n\n{minimum: 1, maximum: 99}' },
    tags: {
      type: 'array',
      items: { type: 'string', description: '{minLength: 2}' },
      description: '{minItems: 2}',
    },
    more: {
      type: 'object',
      properties: { a: { anyOf: [{ type: 'string' }, { type: 'null' }] } },
      additionalProperties: false,
    },
    node: { $ref: '#/$defs/N' },
  },
  required: ['age'],
  $defs: {
    N: { type: 'object', properties: { next: { $ref: '#/$defs/N' } }, additionalProperties: false },
  },
  additionalProperties: false,
}
const strict = {
  type: 'object',
  properties: { city: { type: 'string' } },
  required: ['city'],
  additionalProperties: false,
}

const asChat = (schema: object) => ({
  response_format: { type: 'json_schema', json_schema: { name: 'answer', schema } },
})
const asMessages = (schema: object) => ({
  output_config: { format: { type: 'json_schema', schema } },
})
const chatTool = (parameters: object, isStrict: boolean | undefined) => ({
  tools: [{ type: 'function', function: { name: 'f', parameters, strict: isStrict } }],
})
const messagesTool = (input_schema: object) => ({
  tools: [{ name: 'f', input_schema, strict: true }],
})
const format = (schema: object) => ({ type: 'json_schema', schema })

describe('a schema of the output', () => {
  it.each<Case>([
    ['c', 'chat', 'claude-sonnet-4-5', asChat(open), { 'output_config.format': format(closed) }],
    [
      'c',
      'chat',
      'claude-opus-4-8',
      { ...asChat(open), reasoning_effort: 'low' },
      { output_config: { effort: 'low', format: format(closed) } },
    ],
    ['e', 'chat', 'claude-opus-5', asChat(open), { 'output_config.format': format(closed) }],
    [
      'e',
      'messages',
      'claude-opus-5',
      { output_format: format(strict) },
      { 'output_config.format': format(strict), output_format: undefined },
    ],
    [
      'a',
      'messages',
      'gpt-5.1',
      asMessages(strict),
      {
        'response_format.json_schema': { name: 'structured_output', schema: strict, strict: true },
      },
    ],
    [
      'a',
      'messages',
      'gpt-5.1',
      asMessages(open),
      { 'response_format.json_schema': { name: 'structured_output', schema: open } },
    ],
    [
      'd',
      'chat',
      'gemini-2.5-flash',
      asChat({
        type: 'object',
        properties: {
          map: { type: 'object', additionalProperties: { type: 'integer' } },
          kind: { const: 7 },
          const: { type: 'string' },
        },
      }),
      {
        'generationConfig.responseJsonSchema': {
          type: 'object',
          properties: {
            map: { type: 'object', additionalProperties: { type: 'integer' } },
            kind: { enum: [7] },
            const: { type: 'string' },
          },
        },
        'generationConfig.responseSchema': undefined,
      },
    ],
    [
      'd',
      'chat',
      'gemini-2.5-flash',
      asChat({
        type: 'object',
        properties: {
          b: {
            anyOf: [{ type: 'string' }, { type: 'null' }],
            default: null,
            title: 'B',
            description: 'd',
          },
        },
      }),
      { 'generationConfig.responseMimeType': 'application/json' },
    ],
  ])(title, async (vendor, client, model, fields, expected) => {
    expectMembers(await sent(vendor, client, model, fields), expected)
  })

  it('is closed for vendorF, too', async () => {
    const body = await sent('f', 'chat', 'anthropic.claude-sonnet-4-5-v1:0', asChat(open))
    const text = at(body, 'outputConfig.textFormat.structure.jsonSchema.schema')
    expect(JSON.parse(String(text))).toEqual(closed)
  })

  it('is refused for a model that cannot follow it', async () => {
    const message = 'response_format: schemas of outputs of this model are not supported'
    await refused('c', 'chat', 'claude-3-5-haiku-20241022', asChat(open), message)
  })
})

describe('JSON without a schema', () => {
  const json = { response_format: { type: 'json_object' } }
  const instruction =
    'Answer with one JSON object only, without any other text and without a code block.'

  it.each<Case>([
    ['c', 'chat', 'claude-sonnet-4-5', json, { output_config: undefined, system: instruction }],
    [
      'f',
      'chat',
      'anthropic.claude-sonnet-4-5-v1:0',
      json,
      { outputConfig: undefined, system: [{ text: instruction }] },
    ],
    [
      'd',
      'chat',
      'gemini-2.5-flash',
      json,
      { 'generationConfig.responseMimeType': 'application/json', systemInstruction: undefined },
    ],
  ])(title, async (vendor, client, model, fields, expected) => {
    expectMembers(await sent(vendor, client, model, fields), expected)
  })
})

describe('a strict tool', () => {
  it.each<Case>([
    [
      'c',
      'chat',
      'claude-sonnet-4-5',
      chatTool(open, true),
      { 'tools.0.strict': true, 'tools.0.input_schema': closed },
    ],
    [
      'c',
      'chat',
      'claude-sonnet-4-5',
      chatTool(open, undefined),
      { 'tools.0.strict': undefined, 'tools.0.input_schema': open },
    ],
    [
      'c',
      'responses',
      'claude-opus-4-8',
      { tools: [{ type: 'function', name: 'f', parameters: strict, strict: true }] },
      { 'tools.0.strict': true },
    ],
    [
      'f',
      'chat',
      'anthropic.claude-sonnet-4-5-v1:0',
      chatTool(open, true),
      {
        'toolConfig.tools.0.toolSpec.strict': true,
        'toolConfig.tools.0.toolSpec.inputSchema.json': closed,
      },
    ],
    [
      'f',
      'chat',
      'anthropic.claude-opus-4-8',
      chatTool(open, true),
      { 'toolConfig.tools.0.toolSpec.strict': undefined },
    ],
    [
      'f',
      'chat',
      'amazon.nova-pro-v1:0',
      chatTool(open, false),
      { 'toolConfig.tools.0.toolSpec.strict': undefined },
    ],
    ['a', 'messages', 'gpt-5.1', messagesTool(strict), { 'tools.0.function.strict': true }],
    ['a', 'messages', 'gpt-5.1', messagesTool(open), { 'tools.0.function.strict': undefined }],
    [
      'd',
      'chat',
      'gemini-2.5-flash',
      chatTool(strict, true),
      { 'toolConfig.functionCallingConfig.mode': 'VALIDATED' },
    ],
    [
      'd',
      'chat',
      'gemini-2.5-flash',
      chatTool({ type: 'object', properties: {} }, undefined),
      { 'tools.0.functionDeclarations.0': { name: 'f' } },
    ],
  ])(title, async (vendor, client, model, fields, expected) => {
    expectMembers(await sent(vendor, client, model, fields), expected)
  })
})

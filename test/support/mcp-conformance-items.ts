/** What the official conformance suite for MCP servers wants a server to offer. */
import type { Server } from '@modelcontextprotocol/sdk/server/index.js'
import type { RequestHandlerExtra } from '@modelcontextprotocol/sdk/shared/protocol.js'
import type {
  CallToolResult,
  ElicitRequestFormParams,
  GetPromptResult,
  ReadResourceResult,
  ServerNotification,
  ServerRequest,
} from '@modelcontextprotocol/sdk/types.js'

type Extra = RequestHandlerExtra<ServerRequest, ServerNotification>
type Arguments = Readonly<Record<string, unknown>>
type Schema = { readonly type: 'object'; readonly [keyword: string]: unknown }

interface Tool {
  readonly description: string
  readonly inputSchema?: Schema
  call(args: Arguments, extra: Extra, server: Server): CallToolResult | Promise<CallToolResult>
}

/** One red pixel. */
const png =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=='
/** Silence. */
const wav = 'UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA='

export const nothing: Schema = { type: 'object', properties: {} }
const text = (value: string): CallToolResult => ({ content: [{ type: 'text', text: value }] })
const image = { type: 'image', data: png, mimeType: 'image/png' } as const
const pause = () => new Promise((resolve) => setTimeout(resolve, 50))

async function elicit(
  { sendRequest }: Extra,
  message: string,
  requestedSchema: unknown,
  label: string,
): Promise<CallToolResult> {
  const { ElicitResultSchema } = await import('@modelcontextprotocol/sdk/types.js')
  const params = { message, requestedSchema } as ElicitRequestFormParams
  const result = await sendRequest({ method: 'elicitation/create', params }, ElicitResultSchema)
  return text(`${label}: action=${result.action}, content=${JSON.stringify(result.content ?? {})}`)
}

const titled = (names: readonly string[]) =>
  names.map((title, at) => ({ const: `value${at + 1}`, title }))
const options = ['option1', 'option2', 'option3']

export const tools: Readonly<Record<string, Tool>> = {
  test_simple_text: {
    description: 'Gives a text.',
    call: () => text('This is a simple text response for testing.'),
  },
  test_image_content: {
    description: 'Gives an image.',
    call: () => ({ content: [image] }),
  },
  test_audio_content: {
    description: 'Gives a sound.',
    call: () => ({ content: [{ type: 'audio', data: wav, mimeType: 'audio/wav' }] }),
  },
  test_embedded_resource: {
    description: 'Gives a resource.',
    call: () => ({
      content: [
        {
          type: 'resource',
          resource: {
            uri: 'test://embedded-resource',
            mimeType: 'text/plain',
            text: 'This is an embedded resource content.',
          },
        },
      ],
    }),
  },
  test_multiple_content_types: {
    description: 'Gives a text, an image and a resource.',
    call: () => ({
      content: [
        { type: 'text', text: 'Multiple content types test:' },
        image,
        {
          type: 'resource',
          resource: {
            uri: 'test://mixed-content-resource',
            mimeType: 'application/json',
            text: JSON.stringify({ test: 'data', value: 123 }),
          },
        },
      ],
    }),
  },
  test_tool_with_logging: {
    description: 'Logs what it does.',
    async call(_, { sendNotification }) {
      const log = (data: string) =>
        sendNotification({ method: 'notifications/message', params: { level: 'info', data } })
      await log('Tool execution started')
      await pause()
      await log('Tool processing data')
      await pause()
      await log('Tool execution completed')
      return text('done')
    },
  },
  test_tool_with_progress: {
    description: 'Reports its progress.',
    async call(_, { sendNotification, _meta }) {
      for (const progress of [0, 50, 100]) {
        const progressToken = _meta?.progressToken
        if (progressToken !== undefined) {
          const params = { progressToken, progress, total: 100 }
          await sendNotification({ method: 'notifications/progress', params })
        }
        if (progress < 100) await pause()
      }
      return text('done')
    },
  },
  test_error_handling: {
    description: 'Fails.',
    call: () => ({
      ...text('This tool intentionally returns an error for testing'),
      isError: true,
    }),
  },
  test_sampling: {
    description: 'Asks the model of the client.',
    inputSchema: { type: 'object', properties: { prompt: { type: 'string' } } },
    async call({ prompt }, { sendRequest }) {
      const { CreateMessageResultSchema } = await import('@modelcontextprotocol/sdk/types.js')
      const content = { type: 'text' as const, text: String(prompt) }
      const params = { messages: [{ role: 'user' as const, content }], maxTokens: 100 }
      const request = { method: 'sampling/createMessage' as const, params }
      const result = await sendRequest(request, CreateMessageResultSchema)
      const answer = result.content.type === 'text' ? result.content.text : ''
      return text(`LLM response: ${answer}`)
    },
  },
  test_elicitation: {
    description: 'Asks the user.',
    inputSchema: { type: 'object', properties: { message: { type: 'string' } } },
    call({ message }, extra) {
      const properties = {
        username: { type: 'string', description: "User's response" },
        email: { type: 'string', description: "User's email address" },
      }
      const schema = { type: 'object', properties, required: ['username', 'email'] }
      return elicit(extra, String(message), schema, 'User response')
    },
  },
  test_elicitation_sep1034_defaults: {
    description: 'Asks the user, with defaults.',
    call(_, extra) {
      const properties = {
        name: { type: 'string', default: 'John Doe' },
        age: { type: 'integer', default: 30 },
        score: { type: 'number', default: 95.5 },
        status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
        verified: { type: 'boolean', default: true },
      }
      const schema = { type: 'object', properties, required: [] }
      return elicit(extra, 'Who are you?', schema, 'Elicitation completed')
    },
  },
  test_elicitation_sep1330_enums: {
    description: 'Asks the user to choose.',
    call(_, extra) {
      const first = ['First Option', 'Second Option', 'Third Option']
      const choices = ['First Choice', 'Second Choice', 'Third Choice']
      const properties = {
        untitledSingle: { type: 'string', enum: options },
        titledSingle: { type: 'string', oneOf: titled(first) },
        legacyEnum: {
          type: 'string',
          enum: ['opt1', 'opt2', 'opt3'],
          enumNames: ['Option One', 'Option Two', 'Option Three'],
        },
        untitledMulti: { type: 'array', items: { type: 'string', enum: options } },
        titledMulti: { type: 'array', items: { anyOf: titled(choices) } },
      }
      const schema = { type: 'object', properties, required: [] }
      return elicit(extra, 'Choose.', schema, 'Elicitation completed')
    },
  },
  test_reconnection: {
    description: 'Closes the stream of its answer, which then comes on another one.',
    async call(_, { closeSSEStream }) {
      closeSSEStream?.()
      await pause()
      return text('Reconnection test completed')
    },
  },
  json_schema_2020_12_tool: {
    description: 'Tool with JSON Schema 2020-12 features',
    inputSchema: {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      $defs: {
        address: {
          $anchor: 'addressDef',
          type: 'object',
          properties: { street: { type: 'string' }, city: { type: 'string' } },
        },
      },
      properties: {
        name: { type: 'string' },
        address: { $ref: '#/$defs/address' },
        contactMethod: { type: 'string', enum: ['phone', 'email'] },
        phone: { type: 'string' },
        email: { type: 'string' },
      },
      allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
      if: { properties: { contactMethod: { const: 'phone' } } },
      // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema.
      then: { required: ['phone'] },
      else: { required: ['email'] },
      additionalProperties: false,
    },
    call: () => text('fine'),
  },
}

interface Prompt {
  readonly description: string
  readonly arguments?: { readonly name: string; readonly required: boolean }[]
  get(args: Arguments): GetPromptResult['messages']
}

const says = (value: string) => ({ role: 'user', content: { type: 'text', text: value } }) as const
const required = (...names: string[]) => names.map((name) => ({ name, required: true }))

export const prompts: Readonly<Record<string, Prompt>> = {
  test_simple_prompt: {
    description: 'A prompt.',
    get: () => [says('This is a simple prompt for testing.')],
  },
  test_prompt_with_arguments: {
    description: 'A prompt with arguments.',
    arguments: required('arg1', 'arg2'),
    get: ({ arg1, arg2 }) => [says(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)],
  },
  test_prompt_with_embedded_resource: {
    description: 'A prompt with a resource.',
    arguments: required('resourceUri'),
    get: ({ resourceUri }) => [
      {
        role: 'user',
        content: {
          type: 'resource',
          resource: {
            uri: String(resourceUri),
            mimeType: 'text/plain',
            text: 'Embedded resource content for testing.',
          },
        },
      },
      says('Please process the embedded resource above.'),
    ],
  },
  test_prompt_with_image: {
    description: 'A prompt with an image.',
    get: () => [{ role: 'user', content: image }, says('Please analyze the image above.')],
  },
}

export const resources = [
  {
    uri: 'test://static-text',
    name: 'text',
    description: 'A text.',
    mimeType: 'text/plain',
    text: 'This is the content of the static text resource.',
  },
  {
    uri: 'test://static-binary',
    name: 'binary',
    description: 'An image.',
    mimeType: 'image/png',
    blob: png,
  },
  {
    uri: 'test://watched-resource',
    name: 'watched',
    description: 'Something that changes.',
    mimeType: 'text/plain',
    text: 'watched',
  },
]

export function readResource(uri: string): ReadResourceResult {
  const found = resources.find((resource) => resource.uri === uri)
  if (found !== undefined) {
    const { name: _, description: __, ...contents } = found
    return { contents: [contents as ReadResourceResult['contents'][number]] }
  }
  const id = /^test:\/\/template\/([^/]+)\/data$/.exec(uri)?.[1]
  if (id === undefined) throw new Error(`there is no ${uri}`)
  const data = JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` })
  return { contents: [{ uri, mimeType: 'application/json', text: data }] }
}

/** The shapes of the fields that translations read, by the format of the client. */
import type { JsonObject } from '../json/json.ts'
import type { ReadRouteType } from '../route-type.ts'
import {
  anyObject,
  boolean,
  checkShape,
  either,
  list,
  number,
  object,
  type Shape,
  text,
} from './shape.ts'

const schema = anyObject
const generateContentFields = { cachedContent: text, labels: anyObject }
const sampling = { temperature: number, top_p: number, top_k: number }

const image = either(text, object({ url: text }, { required: 'url' }))

const completionsPart = object(
  {
    type: text,
    text,
    refusal: text,
    image_url: image,
    input_audio: object({ data: text, format: text }, { required: 'data' }),
    file: object({ file_data: text, file_id: text, filename: text }),
  },
  {
    by: {
      type: {
        text: 'text',
        refusal: 'refusal',
        image_url: 'image_url',
        input_audio: 'input_audio',
        file: 'file',
      },
    },
  },
)

const completionsMessage = object(
  {
    role: text,
    content: either(text, list(either(text, completionsPart))),
    refusal: text,
    reasoning_content: text,
    tool_call_id: text,
    tool_calls: list(
      object({
        id: text,
        function: object({ name: text, arguments: text }, { required: 'name' }),
        custom: object({ name: text, input: text }, { required: 'name' }),
      }),
    ),
  },
  {
    required: 'role',
    by: { role: { user: 'content', system: 'content', developer: 'content', tool: 'content' } },
  },
)

const completions = object(
  {
    messages: list(completionsMessage),
    stream: boolean,
    stream_options: object({ include_usage: boolean }),
    tools: list(
      object({
        type: text,
        function: object({ name: text, description: text, parameters: schema }),
        custom: object({ name: text, description: text }),
      }),
    ),
    tool_choice: either(text, anyObject),
    parallel_tool_calls: boolean,
    max_tokens: number,
    max_completion_tokens: number,
    ...sampling,
    stop: either(text, list(text)),
    seed: number,
    frequency_penalty: number,
    presence_penalty: number,
    n: number,
    reasoning_effort: text,
    thinking_budget_tokens: number,
    response_format: object(
      { type: text, json_schema: object({ name: text, description: text, schema }) },
      { required: 'type', by: { type: { json_schema: 'json_schema' } } },
    ),
    modalities: list(text),
    functions: list(anyObject),
    web_search_options: anyObject,
    user: text,
    ...generateContentFields,
  },
  { required: 'messages' },
)

const cached = { cache_control: anyObject }

const block: Shape = object(
  {
    type: text,
    text,
    source: object({
      type: text,
      media_type: text,
      data: text,
      url: text,
      content: either(text, list(anyObject)),
    }),
    id: text,
    name: text,
    input: anyObject,
    tool_use_id: text,
    // Tool results may contain blocks; the result of a tool that the provider runs may be an object.
    content: either(
      text,
      list({ ...anyObject, check: (value, path) => block.check?.(value, path) }),
      anyObject,
    ),
    is_error: boolean,
    thinking: text,
    signature: text,
    data: text,
    title: text,
    context: text,
    ...cached,
  },
  {
    required: 'type',
    by: {
      type: {
        text: 'text',
        image: 'source',
        document: 'source',
        tool_use: 'id name',
        tool_result: 'tool_use_id',
        thinking: 'thinking',
        redacted_thinking: 'data',
      },
    },
  },
)

const content = either(text, list(block))

const messages = object(
  {
    system: content,
    messages: list(object({ role: text, content }, { required: 'role content' })),
    stream: boolean,
    tools: list(
      object({ type: text, name: text, description: text, input_schema: schema, ...cached }),
    ),
    tool_choice: object(
      { type: text, name: text, disable_parallel_tool_use: boolean },
      { required: 'type', by: { type: { tool: 'name' } } },
    ),
    max_tokens: number,
    ...sampling,
    stop_sequences: list(text),
    thinking: object({ type: text, budget_tokens: number }, { required: 'type' }),
    output_config: object({ effort: text, format: object({ type: text, schema }) }),
    output_format: object({ type: text, schema }),
    metadata: object({ user_id: text }),
    mcp_servers: list(anyObject),
    ...generateContentFields,
  },
  { required: 'messages' },
)

const responsesPart = object(
  {
    type: text,
    text,
    refusal: text,
    image_url: text,
    file_data: text,
    file_url: text,
    file_id: text,
    filename: text,
  },
  {
    required: 'type',
    by: { type: { input_text: 'text', output_text: 'text', text: 'text', refusal: 'refusal' } },
  },
)

const item = object(
  {
    type: text,
    role: text,
    content: either(text, list(responsesPart)),
    name: text,
    call_id: text,
    arguments: text,
    input: text,
    output: either(text, list(responsesPart), anyObject),
    summary: list(object({ text })),
    encrypted_content: text,
  },
  {
    by: {
      type: {
        message: 'role content',
        function_call: 'call_id name arguments',
        function_call_output: 'call_id output',
        custom_tool_call: 'call_id name input',
        custom_tool_call_output: 'call_id output',
      },
    },
  },
)

const responses = object(
  {
    instructions: text,
    input: either(text, list(item)),
    stream: boolean,
    tools: list(object({ type: text, name: text, description: text, parameters: schema })),
    tool_choice: either(text, anyObject),
    parallel_tool_calls: boolean,
    max_output_tokens: number,
    ...sampling,
    text: object({ format: object({ type: text, name: text, description: text, schema }) }),
    reasoning: object({ effort: text }),
    previous_response_id: text,
    user: text,
    ...generateContentFields,
  },
  { required: 'input' },
)

const embeddings = object({
  dimensions: number,
  encoding_format: text,
  task_type: text,
  title: text,
  auto_truncate: boolean,
  input_type: text,
  truncate: text,
  normalize: boolean,
})

const shapes: Readonly<Record<ReadRouteType, Shape>> = {
  Completions: completions,
  Messages: messages,
  VendorCTokenCount: messages,
  Responses: responses,
  Embeddings: embeddings,
}

/** @throws LlmError 400 with the path of a field of the wrong shape. */
export function checkClientShape(body: JsonObject, route: ReadRouteType): void {
  checkShape(shapes[route], body, '')
}

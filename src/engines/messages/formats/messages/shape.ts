/** The shape of the fields that translations read. */

import {
  anyObject,
  boolean,
  either,
  generateContentFields,
  list,
  number,
  object,
  type Shape,
  sampling,
  schema,
  text,
} from '../../common/shape.ts'

const cached = { cache_control: anyObject }

const block: Shape = object(
  {
    type: text,
    text,
    // The source of a search result is its location.
    source: either(
      text,
      object({
        type: text,
        media_type: text,
        data: text,
        url: text,
        content: either(text, list(anyObject)),
      }),
    ),
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

export const messagesShape = object(
  {
    system: content,
    messages: list(object({ role: text, content }, { required: 'role content' })),
    stream: boolean,
    tools: list(
      object({
        type: text,
        name: text,
        description: text,
        input_schema: schema,
        strict: boolean,
        ...cached,
      }),
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
    ...cached,
    mcp_servers: list(anyObject),
    ...generateContentFields,
  },
  { required: 'messages' },
)

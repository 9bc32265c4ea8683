/** The shape of the fields that translations read. */

import {
  anyObject,
  boolean,
  either,
  generateContentFields,
  list,
  number,
  object,
  sampling,
  schema,
  text,
} from '../../common/shape.ts'

const image = either(text, object({ url: text }, { required: 'url' }))

const part = object(
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

const message = object(
  {
    role: text,
    content: either(text, list(either(text, part))),
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

export const completionsShape = object(
  {
    messages: list(message),
    stream: boolean,
    stream_options: object({ include_usage: boolean }),
    tools: list(
      object({
        type: text,
        function: object({ name: text, description: text, parameters: schema, strict: boolean }),
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
      {
        type: text,
        json_schema: object({ name: text, description: text, schema, strict: boolean }),
      },
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

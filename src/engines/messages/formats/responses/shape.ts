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

const part = object(
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
    content: either(text, list(part)),
    name: text,
    call_id: text,
    arguments: either(text, anyObject),
    input: text,
    output: either(text, list(part), anyObject),
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

export const responsesShape = object(
  {
    instructions: text,
    input: either(text, list(item)),
    stream: boolean,
    tools: list(
      object({ type: text, name: text, description: text, parameters: schema, strict: boolean }),
    ),
    tool_choice: either(text, anyObject),
    parallel_tool_calls: boolean,
    max_output_tokens: number,
    ...sampling,
    text: object({
      format: object({ type: text, name: text, description: text, schema, strict: boolean }),
    }),
    reasoning: object({ effort: text }),
    previous_response_id: text,
    user: text,
    ...generateContentFields,
  },
  { required: 'input' },
)

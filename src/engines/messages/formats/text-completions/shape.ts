/** The shape of the fields that translations read. */
import {
  anyObject,
  boolean,
  either,
  list,
  number,
  object,
  sampling,
  text,
} from '../../common/shape.ts'

export const textCompletionsShape = object(
  {
    prompt: either(text, list(either(text, number, list(number)))),
    stream: boolean,
    stream_options: object({ include_usage: boolean }),
    max_tokens: number,
    ...sampling,
    stop: either(text, list(text)),
    seed: number,
    frequency_penalty: number,
    presence_penalty: number,
    n: number,
    logit_bias: anyObject,
    user: text,
  },
  { required: 'prompt' },
)

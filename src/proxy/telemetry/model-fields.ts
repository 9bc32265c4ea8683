/** Fields of a request to a language model, by the names of OpenTelemetry's conventions for them. */
import { inputWithCache } from '../../backends/ai/chat.ts'
import type { ModelFacts, ModelParameters } from './types.ts'

type Value = string | number | undefined

interface ModelField {
  readonly name: string
  readonly read: (facts: ModelFacts) => Value
}

const field = (name: string, read: ModelField['read']): ModelField => ({ name, read })
const parameter = (name: string, of: keyof ModelParameters): ModelField =>
  field(name, ({ parameters }) => parameters?.()[of])
const kind = (name: string, of: string): ModelField =>
  field(name, ({ usage }) => usage?.kinds?.[of])

export const modelFields: readonly ModelField[] = [
  field('gen_ai.operation.name', ({ operation }) => operation),
  field('gen_ai.provider.name', ({ provider }) => provider),
  field('gen_ai.request.model', ({ requestModel }) => requestModel),
  field('gen_ai.response.model', ({ responseModel }) => responseModel),
  field('gen_ai.usage.input_tokens', ({ usage }) => usage && inputWithCache(usage)),
  field('gen_ai.usage.output_tokens', ({ usage }) => usage?.output),
  field('gen_ai.usage.cache_read.input_tokens', ({ usage }) => usage?.cacheRead),
  field('gen_ai.usage.cache_creation.input_tokens', ({ usage }) => usage?.cacheWrite),
  field('gen_ai.usage.reasoning_tokens', ({ usage }) => usage?.reasoning),
  kind('gen_ai.usage.output_image_tokens', 'outputImageTokens'),
  kind('gen_ai.usage.input_audio_tokens', 'inputAudioTokens'),
  kind('gen_ai.usage.output_audio_tokens', 'outputAudioTokens'),
  parameter('gen_ai.request.temperature', 'temperature'),
  parameter('gen_ai.request.top_p', 'top_p'),
  parameter('gen_ai.request.max_tokens', 'max_tokens'),
  parameter('gen_ai.request.frequency_penalty', 'frequency_penalty'),
  parameter('gen_ai.request.presence_penalty', 'presence_penalty'),
  parameter('gen_ai.request.seed', 'seed'),
  parameter('gen_ai.request.encoding_formats', 'encoding_format'),
  parameter('gen_ai.embeddings.dimension.count', 'dimensions'),
  field('gen_ai.server.time_to_first_token', ({ firstTokenSeconds }) => rounded(firstTokenSeconds)),
  field('gen_ai.server.time_per_output_token', ({ perTokenSeconds }) => rounded(perTokenSeconds)),
]

/** Seconds with microseconds. */
function rounded(seconds: number | undefined): number | undefined {
  return seconds === undefined ? undefined : Math.round(seconds * 1e6) / 1e6
}

/** The fields that are known, each written by a function. */
export function modelText(
  facts: ModelFacts | undefined,
  write: (name: string, value: string | number) => string,
): string {
  if (facts === undefined) return ''
  let text = ''
  for (const { name, read } of modelFields) {
    const value = read(facts)
    if (value !== undefined && value !== '') text += write(name, value)
  }
  return text
}

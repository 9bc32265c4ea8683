/** Embeddings: the common form of requests and responses, and the provider formats other than vendor A's. */
import { countAt } from '../../common/usage.ts'
import {
  booleanAt,
  compact,
  field,
  type JsonObject,
  listAt,
  numberAt,
  objectAt,
  stringAt,
} from '../../json/json.ts'
import { LlmError, UnsupportedByProviderError } from '../../llm-error.ts'

export interface EmbeddingsRequest {
  readonly model: string
  readonly texts: readonly string[]
  readonly dimensions?: number
  /** The client's body, for fields that only some providers have. */
  readonly body: JsonObject
}

export interface EmbeddingsResponse {
  readonly vectors: readonly (readonly unknown[])[]
  /** Number of input tokens; undefined if the provider does not report it. */
  readonly tokens: number | undefined
}

/** @throws LlmError 400 if the input is not text. */
export function readEmbeddingsRequest(body: JsonObject): EmbeddingsRequest {
  const input = field(body, 'input')
  const texts = typeof input === 'string' ? [input] : input
  if (!Array.isArray(texts) || texts.length === 0) {
    throw new LlmError(400, 'input must be text or an array of texts')
  }
  if (!texts.every((text): text is string => typeof text === 'string')) {
    throw new UnsupportedByProviderError('input: this provider takes texts only, no tokens')
  }
  return {
    model: stringAt(body, 'model') ?? '',
    texts,
    dimensions: numberAt(body, 'dimensions'),
    body,
  }
}

/** Writes vendor A's format. If `isEncoded`, vectors are little-endian 32-bit floats in base64. */
export function writeEmbeddings(
  model: string,
  { vectors, tokens = 0 }: EmbeddingsResponse,
  isEncoded: boolean,
): JsonObject {
  return {
    object: 'list',
    data: vectors.map((vector, index) => ({
      object: 'embedding',
      index,
      embedding: isEncoded ? encoded(vector) : vector,
    })),
    model,
    usage: { prompt_tokens: tokens, total_tokens: tokens },
  }
}

/** Writes a request in vendor A's format. */
export const writeEmbeddingsRequest = ({
  model,
  texts,
  dimensions,
}: EmbeddingsRequest): JsonObject => compact({ model, input: texts, dimensions })

/** Reads a response in vendor A's format. @throws LlmError 502 if it has no data. */
export function readEmbeddings(body: unknown): EmbeddingsResponse {
  const data = listAt(body, 'data')
  if (data.length === 0) throw new LlmError(502, 'the response has no data')
  const tokens = countAt(objectAt(body, 'usage'), 'prompt_tokens')
  return { vectors: data.map((one) => listAt(one, 'embedding')), tokens }
}

function encoded(vector: readonly unknown[]): string {
  const bytes = Buffer.alloc(vector.length * 4)
  for (const [at, value] of vector.entries()) bytes.writeFloatLE(Number(value), at * 4)
  return bytes.toString('base64')
}

/** Writes a `:predict` request of vendor E. */
export function writePredict({ texts, dimensions, body }: EmbeddingsRequest): JsonObject {
  const taskType = stringAt(body, 'task_type') ?? 'RETRIEVAL_QUERY'
  const title = stringAt(body, 'title')
  const parameters = compact({
    autoTruncate: booleanAt(body, 'auto_truncate'),
    outputDimensionality: dimensions,
  })
  return compact({
    instances: texts.map((content) => compact({ content, task_type: taskType, title })),
    parameters: Object.keys(parameters).length === 0 ? undefined : parameters,
  })
}

/** @throws LlmError 502 if the body has no predictions. */
export function readPredict(body: unknown): EmbeddingsResponse {
  const predictions = listAt(body, 'predictions').map((one) => objectAt(one, 'embeddings'))
  if (predictions.length === 0) throw new LlmError(502, 'the response has no predictions')
  const counts = predictions.map((one) => countAt(objectAt(one, 'statistics'), 'token_count') ?? 0)
  const tokens = counts.reduce((sum, count) => sum + count, 0)
  return { vectors: predictions.map((one) => listAt(one, 'values')), tokens }
}

/** Response header with the number of input tokens of an invoked model. */
export const invokeTokensHeader = 'x-amzn-bedrock-input-token-count'

/** The embeddings format of a model family of vendor F. */
interface InvokeFamily {
  write(request: EmbeddingsRequest): JsonObject
  /** `tokens` is the number in the response header `invokeTokensHeader`. */
  read(body: unknown, tokens: number | undefined): EmbeddingsResponse
}

/** Returns the only text of a request. @throws LlmError 400 if there are several. */
function onlyText({ texts, model }: EmbeddingsRequest): string {
  const [text, ...more] = texts
  if (text === undefined || more.length > 0) {
    throw new UnsupportedByProviderError(`input: ${model} takes one text at a time`)
  }
  return text
}

const cohere: InvokeFamily = {
  write: (request) =>
    compact({
      texts: request.texts,
      input_type: stringAt(request.body, 'input_type') ?? 'search_query',
      truncate: stringAt(request.body, 'truncate'),
      output_dimension: request.model.includes('embed-v4') ? request.dimensions : undefined,
    }),
  read(body, tokens) {
    const found = field(body, 'embeddings')
    const vectors = Array.isArray(found) ? found : listAt(found, 'float')
    return { vectors: vectors.filter((one) => Array.isArray(one)), tokens }
  },
}

const nova: InvokeFamily = {
  write: (request) => ({
    taskType: 'SINGLE_EMBEDDING',
    singleEmbeddingParams: compact({
      embeddingPurpose: 'GENERIC_INDEX',
      embeddingDimension: request.dimensions,
      text: { truncationMode: 'END', value: onlyText(request) },
    }),
  }),
  read(body, tokens) {
    const [first] = listAt(body, 'embeddings')
    return { vectors: [listAt(first, 'embedding')], tokens }
  },
}

const titan: InvokeFamily = {
  write: (request) =>
    compact({
      inputText: onlyText(request),
      dimensions: request.dimensions,
      normalize: booleanAt(request.body, 'normalize'),
      embeddingTypes: field(request.body, 'embeddingTypes'),
    }),
  read(body, tokens) {
    const plain = listAt(body, 'embedding')
    const vector = plain.length > 0 ? plain : listAt(objectAt(body, 'embeddingsByType'), 'float')
    return { vectors: [vector], tokens: countAt(body, 'inputTextTokenCount') ?? tokens }
  },
}

export function invokeFamily(model: string): InvokeFamily {
  if (model.includes('cohere')) return cohere
  return model.includes('nova') ? nova : titan
}

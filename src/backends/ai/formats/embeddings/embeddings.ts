/** Embeddings: the common form of a request, and what providers without vendorA's format take. */
import {
  booleanAt,
  compact,
  field,
  type JsonObject,
  listAt,
  numberAt,
  objectAt,
  stringAt,
} from '../../json.ts'
import { LlmError, UnsupportedByProviderError } from '../../llm-error.ts'

interface EmbeddingsRequest {
  readonly model: string
  readonly texts: readonly string[]
  readonly dimensions?: number
  /** The client wants vectors as text: SDKs do, where nobody tells them otherwise. */
  readonly isEncoded: boolean
  /** The body as it came, for fields of single providers. */
  readonly body: JsonObject
}

export interface Embeddings {
  readonly vectors: readonly (readonly unknown[])[]
  /** Undefined where the provider does not say. */
  readonly tokens?: number
}

/** @throws LlmError 400 where the input is not text. */
export function readEmbeddingsRequest(body: JsonObject): EmbeddingsRequest {
  const input = field(body, 'input')
  const texts = typeof input === 'string' ? [input] : input
  if (!Array.isArray(texts) || texts.length === 0) {
    throw new LlmError(400, 'input must be text or an array of texts')
  }
  if (!texts.every((text): text is string => typeof text === 'string')) {
    throw new UnsupportedByProviderError('input: this provider takes texts only, no tokens')
  }
  const dimensions = numberAt(body, 'dimensions')
  return {
    model: stringAt(body, 'model') ?? '',
    texts,
    ...(dimensions !== undefined && { dimensions }),
    isEncoded: stringAt(body, 'encoding_format') === 'base64',
    body,
  }
}

/** The answer in vendorA's format; `isEncoded`: vectors as base64 of 32-bit floats, little-endian. */
export function writeEmbeddings(
  model: string,
  { vectors, tokens = 0 }: Embeddings,
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

const bytesPerFloat = 4

function encoded(vector: readonly unknown[]): string {
  const bytes = Buffer.alloc(vector.length * bytesPerFloat)
  for (const [at, value] of vector.entries()) bytes.writeFloatLE(Number(value), at * bytesPerFloat)
  return bytes.toString('base64')
}

/** `:predict` of vendorE. */
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

/** @throws LlmError 502 */
export function readPredict(body: unknown): Embeddings {
  const predictions = listAt(body, 'predictions').map((one) => objectAt(one, 'embeddings'))
  if (predictions.length === 0) throw new LlmError(502, 'the answer has no predictions')
  const tokens = predictions.reduce(
    (sum, one) => sum + (numberAt(objectAt(one, 'statistics'), 'token_count') ?? 0),
    0,
  )
  return { vectors: predictions.map((one) => listAt(one, 'values')), tokens }
}

/** The header in which a provider counts what an invoked model has read. */
export const invokeTokensHeader = 'x-amzn-bedrock-input-token-count'

/** How a family of models of vendorF takes texts and gives vectors. */
interface InvokeFamily {
  write(request: EmbeddingsRequest): JsonObject
  /** `tokens`: from the response header, where the body has none. */
  read(body: unknown, tokens: number | undefined): Embeddings
}

const counted = (tokens: number | undefined) => (tokens === undefined ? {} : { tokens })

/** @throws LlmError 400 */
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
    return { vectors: vectors.filter((one) => Array.isArray(one)), ...counted(tokens) }
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
    return { vectors: [listAt(first, 'embedding')], ...counted(tokens) }
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
    return { vectors: [vector], ...counted(numberAt(body, 'inputTextTokenCount') ?? tokens) }
  },
}

export function invokeFamily(model: string): InvokeFamily {
  if (model.includes('cohere')) return cohere
  return model.includes('nova') ? nova : titan
}

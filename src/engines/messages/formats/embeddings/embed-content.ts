/** Embeddings of vendor D, one at a time or several. */
import type { OtherFormat } from '../../format.ts'
import {
  compact,
  field,
  isObject,
  type JsonObject,
  listAt,
  mapField,
  numberAt,
  objectAt,
  stringAt,
} from '../../json/json.ts'
import { LlmError, UnsupportedByProviderError } from '../../llm-error.ts'
import { resourceOf } from '../generate-content/count-tokens.ts'
import { withCamelNames } from '../generate-content/names.ts'
import { generateContentRequests } from '../generate-content/requests.ts'
import { readGenerateContentUsage } from '../generate-content/usage.ts'
import type { EmbeddingsRequest, EmbeddingsResponse } from './embeddings.ts'

/** Requests for several embeddings name the model in each of them. */
function withoutPath({ model: _model, stream: _stream, ...body }: JsonObject, model: string) {
  return mapField(body, 'requests', (one) =>
    isObject(one) ? { ...one, model: resourceOf(model) } : one,
  )
}

/** Returns the text of a request. @throws LlmError 400 if it has other parts, or no text */
function textOf(request: unknown, path: string): string {
  const parts = listAt(objectAt(request, 'content'), 'parts')
  const texts = parts.map((part) => stringAt(part, 'text'))
  if (texts.length === 0) throw new LlmError(400, `${path}content.parts must be an array of texts`)
  if (texts.includes(undefined)) {
    throw new UnsupportedByProviderError(`${path}content: this provider takes texts only`)
  }
  return texts.join('\n')
}

const isBatch = (body: JsonObject): boolean => body.requests !== undefined

function readRequest(original: JsonObject): EmbeddingsRequest {
  const body = withCamelNames(original)
  const requests = isBatch(body) ? listAt(body, 'requests') : [body]
  const [first] = requests
  if (first === undefined) throw new LlmError(400, 'requests must be an array')
  const settings = ['outputDimensionality', 'taskType', 'title'] as const
  for (const name of settings) {
    if (requests.some((one) => field(one, name) !== field(first, name))) {
      throw new UnsupportedByProviderError(`requests: this provider takes one ${name} for all`)
    }
  }
  return {
    model: stringAt(body, 'model') ?? '',
    texts: requests.map((one, at) => textOf(one, isBatch(body) ? `requests[${at}].` : '')),
    dimensions: numberAt(first, 'outputDimensionality'),
    body: compact({ task_type: stringAt(first, 'taskType'), title: stringAt(first, 'title') }),
  }
}

function writeResponse(
  _model: string,
  { vectors, tokens }: EmbeddingsResponse,
  request: JsonObject,
): JsonObject {
  const [first] = vectors
  const written = isBatch(request)
    ? { embeddings: vectors.map((values) => ({ values })) }
    : { embedding: { values: first ?? [] } }
  return compact({
    ...written,
    usageMetadata: tokens === undefined ? undefined : { promptTokenCount: tokens },
  })
}

const onlyTexts = (body: JsonObject): string | undefined => {
  const all = [body, ...listAt(body, 'requests')]
  const parts = all.flatMap((one) => listAt(objectAt(one, 'content'), 'parts'))
  const areTexts = parts.every((part) => stringAt(part, 'text') !== undefined)
  return areTexts ? undefined : 'content: only texts can be guarded'
}

const requests = {
  ...generateContentRequests,
  operation: 'embeddings' as const,
  canStream: false,
  withoutPath,
  unguardable: onlyTexts,
  usageField: 'usageMetadata',
  readUsage: readGenerateContentUsage,
  responseFields: ['embedding', 'embeddings'],
  hasResponse: ({ embedding, embeddings }: JsonObject) =>
    isObject(embedding) || Array.isArray(embeddings),
  embeddings: { readRequest, writeResponse },
}

export const embedContent: OtherFormat<'EmbedContent'> = {
  ...requests,
  name: 'EmbedContent',
  endings: [':embedcontent'],
  textMembers: ['content'],
}

export const batchEmbedContents: OtherFormat<'BatchEmbedContents'> = {
  ...requests,
  name: 'BatchEmbedContents',
  endings: [':batchembedcontents'],
  textMembers: [],
}

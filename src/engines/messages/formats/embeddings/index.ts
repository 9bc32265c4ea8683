/** Embeddings of vendor A, and the formats of other providers. */

import type { EmbeddingsFormat, OtherFormat } from '../../format.ts'
import { stringAt } from '../../json/json.ts'
import { openAiErrors, openAiHeaders } from '../completions/index.ts'
import { readCompletionsUsage } from '../completions/usage.ts'
import { readConverseError } from '../converse/response.ts'
import { readGoogleError } from '../generate-content/response.ts'
import {
  invokeFamily,
  readEmbeddings,
  readEmbeddingsRequest,
  readPredict,
  writeEmbeddings,
  writeEmbeddingsRequest,
  writePredict,
} from './embeddings.ts'
import { embeddingsShape } from './shape.ts'

const isText = (value: unknown): boolean => typeof value === 'string'

const areTexts = (input: unknown): boolean =>
  isText(input) || (Array.isArray(input) && input.every(isText))

export const embeddings: OtherFormat<'Embeddings'> = {
  name: 'Embeddings',
  core: 'Embeddings',
  operation: 'embeddings',
  endings: ['/embeddings'],
  errors: openAiErrors,
  vendorHeaders: openAiHeaders,
  shape: embeddingsShape,
  // There is no conversation.
  history: { settle: (body) => body, rules: {} },
  textMembers: ['input'],
  limitMembers: [],
  decidedMembers: [],
  problemOf: ({ input }) => (input === undefined ? 'input must be text' : undefined),
  canStream: false,
  // Guards cannot read token numbers.
  unguardable: ({ input }) => (areTexts(input) ? undefined : 'input: only texts can be guarded'),
  responseFields: ['data'],
  hasResponse: ({ data }) => Array.isArray(data),
  readUsage: readCompletionsUsage,
  embeddings: {
    readRequest: readEmbeddingsRequest,
    writeResponse: (model, response, request) =>
      writeEmbeddings(model, response, stringAt(request, 'encoding_format') === 'base64'),
  },
}

/** The format of vendor A, for requests in other formats. */
export const vectors: EmbeddingsFormat = {
  writeRequest: writeEmbeddingsRequest,
  readResponse: readEmbeddings,
  readError: openAiErrors.read,
  responseFields: ['data'],
}

/** Embeddings of vendor E. */
export const predict: EmbeddingsFormat = {
  writeRequest: writePredict,
  readResponse: readPredict,
  readError: readGoogleError,
  responseFields: ['predictions'],
}

/** Embeddings of vendor F, whose format depends on the model. */
export const invoke: EmbeddingsFormat = {
  writeRequest: (request) => invokeFamily(request.model).write(request),
  readResponse: (body, model, tokens) => invokeFamily(model).read(body, tokens),
  readError: readConverseError,
  responseFields: ['embedding', 'embeddings', 'embeddingsByType'],
}

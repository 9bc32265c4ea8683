/** Embeddings of vendor A, and the formats of other providers. */

import type { EmbeddingsFormat, OtherFormat } from '../../format.ts'
import { openAiErrors } from '../completions/index.ts'
import { readCompletionsUsage } from '../completions/usage.ts'
import { readConverseError } from '../converse/response.ts'
import { readGoogleError } from '../generate-content/response.ts'
import { invokeFamily, readPredict, writePredict } from './embeddings.ts'
import { embeddingsShape } from './shape.ts'

const isText = (value: unknown): boolean => typeof value === 'string'

const areTexts = (input: unknown): boolean =>
  isText(input) || (Array.isArray(input) && input.every(isText))

export const embeddings: OtherFormat<'Embeddings'> = {
  name: 'Embeddings',
  core: 'Embeddings',
  operation: 'embeddings',
  ending: '/embeddings',
  errors: openAiErrors,
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

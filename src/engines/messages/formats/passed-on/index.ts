/** Formats that only providers with the same format serve: guards read their texts, and nothing is translated. */
import { anyObject } from '../../common/shape.ts'
import { countAt, usageOf } from '../../common/usage.ts'
import type { OtherFormat } from '../../format.ts'
import { isObject, listAt, mapField, objectAt, stringAt } from '../../json/json.ts'
import { needNames } from '../../json/names.ts'
import { openAiErrors, openAiHeaders } from '../completions/index.ts'
import { needNoVoice } from '../completions/stored.ts'
import { responses } from '../responses/index.ts'
import { readResponsesUsage } from '../responses/usage.ts'

const requests = {
  errors: openAiErrors,
  vendorHeaders: openAiHeaders,
  shape: anyObject,
  // There is no conversation.
  history: { settle: (body: Readonly<Record<string, unknown>>) => body, rules: {} },
  limitMembers: [],
  decidedMembers: [],
  canStream: false,
}

const isText = (value: unknown): boolean => typeof value === 'string'

const hasText = (value: unknown): boolean => isText(value) || stringAt(value, 'text') !== undefined

/** Reads the tokens of a rerank, all of which are input. Cohere bills searches, and reports no tokens. */
const readRerankUsage = (usage: unknown) => {
  const input = countAt(usage, 'total_tokens') ?? countAt(usage, 'prompt_tokens')
  return usageOf({ input, output: input === undefined ? undefined : 0 }, 'included')
}

/** Rerank of Cohere, Jina and vLLM. */
export const rerank: OtherFormat<'Rerank'> = {
  ...requests,
  name: 'Rerank',
  operation: 'rerank',
  endings: ['/rerank'],
  textMembers: ['query', 'documents'],
  problemOf({ query, documents }) {
    if (query === undefined) return 'query must be text'
    return Array.isArray(documents) ? undefined : 'documents must be an array'
  },
  // Guards cannot read images.
  unguardable({ query, documents }) {
    const all = [query, ...(Array.isArray(documents) ? documents : [])]
    return all.every((one) => hasText(one) || isPlainFields(one))
      ? undefined
      : 'documents: only texts can be guarded'
  },
  readUsage: readRerankUsage,
  responseFields: ['results'],
  hasResponse: ({ results }) => Array.isArray(results),
}

/** Whether a document consists of fields with texts. */
const isPlainFields = (document: unknown): boolean =>
  isObject(document) && Object.values(document).every(isText)

/** Images that a prompt describes. */
export const images: OtherFormat<'Images'> = {
  ...requests,
  name: 'Images',
  operation: 'image_generation',
  endings: ['/images/generations'],
  textMembers: ['prompt'],
  hasDefaultModel: true,
  relaysOthers: true,
  problemOf: ({ prompt }) => (isText(prompt) ? undefined : 'prompt must be text'),
  readUsage: readResponsesUsage,
  withoutTexts: (response) => mapField(response, 'data', withoutRevisedPrompt),
  responseFields: ['data'],
  hasResponse: ({ data }) => Array.isArray(data),
}

function withoutRevisedPrompt(image: unknown): unknown {
  if (!isObject(image)) return image
  const { revised_prompt: _prompt, ...rest } = image
  return rest
}

const voiceNames = new Set(['voice'])

/** Speech: the response is sound. */
export const speech: OtherFormat<'Speech'> = {
  ...requests,
  name: 'Speech',
  operation: 'speech',
  endings: ['/audio/speech'],
  textMembers: ['input', 'instructions'],
  relaysOthers: true,
  problemOf: ({ input }) => (isText(input) ? undefined : 'input must be text'),
  stored: {
    members: { any: [], texts: ['id'] },
    open(body) {
      needNames(body, voiceNames)
      needNoVoice(body, 'voice.id')
      return body
    },
  },
  readUsage: () => undefined,
  responseFields: [],
  hasResponse: () => false,
}

const isModerated = (part: unknown): boolean =>
  isText(part) ||
  isText(stringAt(part, 'text')) ||
  isText(stringAt(objectAt(part, 'image_url'), 'url'))

export const moderations: OtherFormat<'Moderations'> = {
  ...requests,
  name: 'Moderations',
  operation: 'moderation',
  endings: ['/moderations'],
  textMembers: ['input'],
  hasDefaultModel: true,
  problemOf: ({ input }) => (input === undefined ? 'input must be text' : undefined),
  unguardable({ input }) {
    const parts = Array.isArray(input) ? input : [input]
    return parts.every(isModerated) ? undefined : 'input: only texts and images can be guarded'
  },
  readUsage: () => undefined,
  responseFields: ['results'],
  hasResponse: ({ results }) => Array.isArray(results),
}

const { errors, vendorHeaders, shape, history, stored } = responses
const { textMembers, limitMembers, problemOf } = responses
const ofResponses = {
  ...{ errors, vendorHeaders, shape, history },
  ...{ textMembers, limitMembers, problemOf },
  ...(stored && { stored }),
}

/** Tokens of a request in the responses format. */
export const responsesTokenCount: OtherFormat<'ResponsesTokenCount'> = {
  ...ofResponses,
  name: 'ResponsesTokenCount',
  operation: 'count_tokens',
  endings: ['/responses/input_tokens'],
  decidedMembers: [],
  canStream: false,
  readUsage: () => undefined,
  readCount: (body) => countAt(body, 'input_tokens'),
  count: {
    readRequest: responses.readRequest,
    writeResponse: (input_tokens) => ({ object: 'response.input_tokens', input_tokens }),
  },
  responseFields: ['input_tokens'],
  hasResponse: (body) => typeof body.input_tokens === 'number',
}

/** A conversation that the vendor makes shorter; the result has what the client sent, and encrypted items. */
export const responsesCompact: OtherFormat<'ResponsesCompact'> = {
  ...ofResponses,
  name: 'ResponsesCompact',
  operation: 'compact',
  endings: ['/responses/compact'],
  decidedMembers: [],
  canStream: false,
  readUsage: readResponsesUsage,
  responseFields: ['output'],
  hasResponse: (body) => listAt(body, 'output').length > 0,
}

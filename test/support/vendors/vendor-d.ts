/** A simulator of vendorD: generateContent, whole and streamed, and embeddings in vendorA's format. */
import type { ServerResponse } from 'node:http'
import { refusalOfGenerate } from './model-rules.ts'
import {
  json,
  openStream,
  type Refusal,
  sendEvent,
  startVendor,
  type Vendor,
  type VendorCall,
} from './vendor.ts'
import { completes, type ToolCall } from './vendor-a.ts'

type Fields = Record<string, unknown>

export const usageD = {
  promptTokenCount: 13,
  cachedContentTokenCount: 3,
  candidatesTokenCount: 6,
  thoughtsTokenCount: 2,
  totalTokenCount: 21,
}

const topLevel = [
  'contents',
  'systemInstruction',
  'system_instruction',
  'tools',
  'toolConfig',
  'safetySettings',
  'generationConfig',
  'cachedContent',
  'labels',
]
const partFields = [
  'text',
  'inlineData',
  'fileData',
  'functionCall',
  'functionResponse',
  'thought',
  'thoughtSignature',
]
const configFields = [
  'temperature',
  'topP',
  'topK',
  'frequencyPenalty',
  'presencePenalty',
  'maxOutputTokens',
  'stopSequences',
  'candidateCount',
  'seed',
  'responseMimeType',
  'responseSchema',
  'responseJsonSchema',
  'responseModalities',
  'thinkingConfig',
]
/** Keywords of the schema subset. */
const schemaFields = [
  'type',
  'format',
  'title',
  'description',
  'nullable',
  'enum',
  'maxItems',
  'minItems',
  'properties',
  'required',
  'minProperties',
  'maxProperties',
  'minLength',
  'maxLength',
  'pattern',
  'anyOf',
  'propertyOrdering',
  'default',
  'items',
  'minimum',
  'maximum',
]

const unknownIn = (fields: object, known: readonly string[], where: string): string | undefined => {
  const name = Object.keys(fields).find((one) => !known.includes(one))
  return name && `Invalid JSON payload received. Unknown name "${name}" at '${where}'`
}

const listOf = (value: unknown): Fields[] => (Array.isArray(value) ? (value as Fields[]) : [])

function checkContent({ role, parts }: Fields, where: string): string | undefined {
  if (role !== 'user' && role !== 'model') return `${where}: Please use a valid role: user, model.`
  if (listOf(parts).length === 0) return `${where}.parts must not be empty`
  for (const part of listOf(parts)) {
    const unknown = unknownIn(part, partFields, `${where}.parts`)
    if (unknown !== undefined) return unknown
    const { functionResponse } = part as { functionResponse?: Fields }
    if (functionResponse !== undefined && typeof functionResponse.response !== 'object') {
      return `${where}: function_response.response must be an object`
    }
  }
  return undefined
}

function checkSchema(schema: Fields | undefined, where: string): string | undefined {
  if (schema === undefined) return undefined
  const unknown = unknownIn(schema, schemaFields, where)
  if (unknown !== undefined) return unknown
  const { type, items, properties = {}, anyOf } = schema
  if (type !== undefined && typeof type !== 'string') return `${where}.type: one type`
  if (type === 'array' && items === undefined) return `${where}.items: missing field`
  const inner = [...Object.values(properties as object), items, ...listOf(anyOf)]
  for (const one of inner) {
    const problem = checkSchema(one as Fields | undefined, where)
    if (problem !== undefined) return problem
  }
  return undefined
}

/** Signatures that the simulator accepts: its own, and the stand-in for one. */
const signatures = ['c2ln', 'ZC1zaWc=', 'skip_thought_signature_validator']

/** Models of the third generation want the first call of each of their contents signed. */
function checkSignatures(contents: readonly Fields[]): string | undefined {
  for (const [at, { parts }] of contents.entries()) {
    const call = listOf(parts).find(({ functionCall }) => functionCall !== undefined)
    if (call !== undefined && !signatures.includes(String(call.thoughtSignature))) {
      const { name } = call.functionCall as Fields
      return `Function call is missing a thought_signature in functionCall parts: ${name}, position ${at}`
    }
  }
  return undefined
}

/** What generateContent refuses of a body. */
export function checkGenerate(body: Fields, path: string): string | undefined {
  const unknown = unknownIn(body, topLevel, '')
  if (unknown !== undefined) return unknown
  const contents = listOf(body.contents)
  if (contents.length === 0) return 'contents is not specified'
  for (const [at, content] of contents.entries()) {
    const problem = checkContent(content, `contents[${at}]`)
    if (problem !== undefined) return problem
  }
  const unsigned = path.includes('gemini-3') ? checkSignatures(contents) : undefined
  if (unsigned !== undefined) return unsigned
  const config = (body.generationConfig ?? {}) as Fields
  const inConfig = unknownIn(config, configFields, 'generation_config')
  if (inConfig !== undefined) return inConfig
  const refusal = refusalOfGenerate(modelOf(path), body)
  if (refusal !== undefined) return refusal
  for (const { functionDeclarations } of listOf(body.tools)) {
    for (const { name, parameters, parametersJsonSchema } of listOf(functionDeclarations)) {
      if (!/^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$/.test(String(name))) {
        return 'Invalid function name. Must start with a letter or an underscore.'
      }
      if (parameters !== undefined && parametersJsonSchema !== undefined) {
        return `tools.${name}: parameters and parameters_json_schema are mutually exclusive`
      }
      const given = (parameters ?? parametersJsonSchema) as Fields | undefined
      if (given !== undefined && !/^object$/i.test(String(given.type)))
        return `tools.${name}.parameters.type`
      const problem = checkSchema(parameters as Fields | undefined, `tools.${name}.parameters`)
      if (problem !== undefined) return problem
    }
  }
  return checkSchema(config.responseSchema as Fields | undefined, 'response_schema')
}

/** The verb of a path of a model; undefined without one. */
export const verbOf = (path: string): string | undefined =>
  /:(generateContent|streamGenerateContent|countTokens)(\?|$)/.exec(path)?.[1]

function check({ method, path, headers, body }: VendorCall): Refusal {
  if (method !== 'POST') return `method ${method}`
  const { pathname, searchParams } = new URL(path, 'http://vendor')
  const key = headers['x-goog-api-key'] ?? searchParams.get('key')
  if (key == null && headers.authorization === undefined) {
    return { status: 403, message: 'Method does not allow unregistered callers' }
  }
  if (key != null && headers.authorization !== undefined) {
    return 'Multiple authentication credentials received. Please pass only one.'
  }
  if (headers['content-type']?.startsWith('application/json') !== true) return 'content-type'
  if (pathname === '/v1beta/openai/embeddings') {
    if (headers.authorization === undefined) return 'Missing or invalid Authorization header.'
    return typeof body.model === 'string' ? undefined : 'model is required'
  }
  if (!/^\/v1(beta)?\/(models|tunedModels)\/[^/:]+:\w+$/.test(pathname)) {
    return { status: 404, message: `no resource ${path}` }
  }
  const verb = verbOf(path)
  if (verb === undefined) return { status: 404, message: `no method of ${path}` }
  const isSse = searchParams.get('alt') === 'sse'
  if ((verb === 'streamGenerateContent') !== isSse) return 'alt=sse'
  if (verb !== 'countTokens') return checkGenerate(body, path)
  // Whole requests are counted only if they name their model.
  const request = body.generateContentRequest as Fields | undefined
  if (request === undefined) return checkGenerate(body, path)
  if (typeof request.model !== 'string') return 'generateContentRequest.model is required'
  const { model: _, ...counted } = request
  return checkGenerate(counted, path)
}

const statusNames: Readonly<Record<number, string>> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  429: 'RESOURCE_EXHAUSTED',
  503: 'UNAVAILABLE',
}

export const errorD = (message: string, code: number) => ({
  error: { code, message, status: statusNames[code] ?? 'INTERNAL' },
})

function piece(model: string, parts: object[], isLast: boolean): object {
  const content = { role: 'model', parts }
  return {
    candidates: [{ content, index: 0, ...(isLast && { finishReason: 'STOP' }) }],
    usageMetadata: usageD,
    modelVersion: model,
    responseId: 'resp-sim',
  }
}

const modelOf = (path: string): string => /models\/([^/:]+):/i.exec(path)?.[1] ?? ''

function answerParts(all: readonly object[][]) {
  return (call: VendorCall, response: ServerResponse): void => {
    const model = decodeURIComponent(modelOf(call.path))
    const verb = verbOf(call.path)
    if (verb === 'countTokens') json(response, 200, { totalTokens: 13 })
    else if (verb === 'generateContent') json(response, 200, piece(model, all.flat(), true))
    else {
      openStream(response)
      for (const [at, parts] of all.entries()) {
        sendEvent(response, piece(model, parts, at === all.length - 1))
      }
      response.end()
    }
  }
}

/** Answers with a text, whole or in pieces, as the path asks. */
export function generates(...pieces: readonly string[]) {
  const answer = answerParts(pieces.map((text) => [{ text }]))
  const embed = completes()
  return (call: VendorCall, response: ServerResponse): void => {
    if (call.path.startsWith('/v1beta/openai/'))
      embed({ ...call, path: '/v1/embeddings' }, response)
    else answer(call, response)
  }
}

/** Calls of this vendor have no ids. */
export const callsD = ({ name, input }: Omit<ToolCall, 'id'>) =>
  answerParts([[{ functionCall: { name, args: input }, thoughtSignature: 'c2ln' }]])

export function failsD(status: number, message: string) {
  return (_: VendorCall, response: ServerResponse): void =>
    json(response, status, errorD(message, status))
}

export const startVendorD = (port?: number): Promise<Vendor> =>
  startVendor(check, generates('Hello ', 'from D'), errorD, port)

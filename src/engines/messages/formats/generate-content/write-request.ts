/** Converts the common form to a native request of vendor D, which has the model in its path. */
import { appendAll } from '../../../../ground/base/append-all.ts'
import type { ModelFacts } from '../../catalog/facts.ts'
import {
  type Block,
  type Chat,
  type DocumentBlock,
  type ImageBlock,
  type ToolCallBlock,
  type ToolResultBlock,
  type Turn,
  type WebSearch,
  withSystemFirst,
} from '../../chat.ts'
import { argumentsObject } from '../../common/arguments.ts'
import { budgetOf, effortOf, nearestEffort } from '../../common/effort.ts'
import { searchResultAsText } from '../../common/media.ts'
import { serviceFor } from '../../common/service.ts'
import { bareId, signatureOf, standInSignature } from '../../common/thought-signature.ts'
import type { ToolLabels } from '../../common/tool-labels.ts'
import type { WriteOptions } from '../../format.ts'
import { compact, type JsonObject } from '../../json/json.ts'
import { unsupportedPart } from '../../llm-error.ts'
import { jsonSchema, parametersSchema } from './json-schema.ts'

const mediaTypes = new Map<string, string>([
  ['jpg', 'image/jpeg'],
  ['jpeg', 'image/jpeg'],
  ['png', 'image/png'],
  ['gif', 'image/gif'],
  ['webp', 'image/webp'],
  ['pdf', 'application/pdf'],
])

/** @throws LlmError 400 for a URL that the provider cannot read from. */
function mediaPart({ source, path }: ImageBlock | DocumentBlock): JsonObject {
  if (source.type === 'data') {
    const mimeType = source.mediaType === 'image/jpg' ? 'image/jpeg' : source.mediaType
    return { inlineData: { mimeType, data: source.data } }
  }
  const { url } = source
  if (!url.startsWith('gs://')) throw unsupportedPart(path, 'files by URL')
  const extension = /\.([a-z0-9]+)$/i.exec(url)?.[1]?.toLowerCase() ?? ''
  const mimeType = source.mediaType ?? mediaTypes.get(extension)
  if (mimeType === undefined) throw unsupportedPart(path, 'files of an unknown media type')
  return { fileData: { mimeType, fileUri: url } }
}

function partsOf(block: Block): JsonObject[] {
  switch (block.type) {
    case 'text':
      return block.text.trim() === '' ? [] : [{ text: block.text }]
    case 'image':
      return [mediaPart(block)]
    case 'document': {
      const isText = block.source.mediaType?.startsWith('text/') === true
      const texts = [isText ? block.name : undefined, block.context]
      const described = texts.flatMap((text) => (text ? [{ text }] : []))
      return [...described, mediaPart(block)]
    }
    case 'audio':
      return [{ inlineData: { mimeType: `audio/${block.format}`, data: block.data } }]
    case 'search-result':
      return [{ text: searchResultAsText(block) }]
    default:
      return []
  }
}

const isText = ({ text }: JsonObject): boolean => text !== undefined

interface Content {
  readonly role: 'user' | 'model' | 'function'
  readonly parts: JsonObject[]
}

/** Writes turns. Keeps the names of calls by id, because a result in this format has the name, not the id. */
class Contents {
  readonly #contents: Content[] = []
  readonly #names = new Map<string, string>()
  /** Positions of the calls in the last assistant turn with calls, by their ids. */
  #lastCalls: ReadonlyMap<string, number> = new Map()
  readonly #labels: ToolLabels
  readonly #signsCalls: boolean

  constructor({ signedCalls }: ModelFacts, labels: ToolLabels) {
    this.#labels = labels
    this.#signsCalls = signedCalls === true
  }

  add({ role, blocks }: Turn): void {
    if (role === 'assistant') {
      const calls = blocks.filter((block) => block.type === 'tool-call')
      for (const { id, name } of calls) this.#names.set(id, name)
      // Reversed, so that a repeated id has the position of its first call.
      const places = calls.map(({ id }, at) => [id, at] as const).reverse()
      if (calls.length > 0) this.#lastCalls = new Map(places)
      const parts = blocks.flatMap((block) =>
        block.type === 'tool-call' ? [this.#call(block, block === calls[0])] : partsOf(block),
      )
      this.#append('model', parts)
      return
    }
    const results = blocks.filter((block) => block.type === 'tool-result')
    if (results.length > 0) this.#results(results)
    const otherParts = blocks.flatMap(partsOf)
    if (otherParts.length > 0 || results.length === 0) {
      this.#append('user', otherParts.length === 0 ? [{ text: ' ' }] : otherParts)
    }
  }

  /** Writes a call. Only the first one of parallel calls needs a signature. */
  #call({ id, name, input }: ToolCallBlock, isFirst: boolean): JsonObject {
    const fallbackSignature = isFirst && this.#signsCalls ? standInSignature : undefined
    return compact({
      functionCall: { name: this.#labels.name(name), args: argumentsObject(input) },
      thoughtSignature: signatureOf(id) ?? fallbackSignature,
    })
  }

  #results(results: readonly ToolResultBlock[]): void {
    const position = ({ id }: ToolResultBlock) => this.#lastCalls.get(id) ?? this.#lastCalls.size
    const sorted = [...results].sort((a, b) => position(a) - position(b))
    const mediaAfterResults: JsonObject[] = []
    const parts = sorted.map((result, at) => this.#result(result, at + 1, mediaAfterResults))
    this.#append('function', parts)
    this.#append('user', mediaAfterResults)
  }

  /** `mediaAfterResults` collects media that older models accept only after the results, not inside them. */
  #result(
    { id, content, isError }: ToolResultBlock,
    number: number,
    mediaAfterResults: JsonObject[],
  ): JsonObject {
    const name = this.#labels.name(this.#names.get(id) ?? bareId(id))
    const all = content.flatMap(partsOf)
    const text = all.flatMap((part) => (isText(part) ? [part.text] : [])).join('\n')
    const response = isError === true ? { error: text } : { content: text }
    const media = all.filter((part) => !isText(part))
    if (media.length === 0) return { functionResponse: { name, response } }
    if (this.#signsCalls) return { functionResponse: { name, response, parts: media } }
    // Names are no texts, and guards do not read them.
    mediaAfterResults.push({ text: `Content of tool result ${number}:` })
    appendAll(mediaAfterResults, media)
    return { functionResponse: { name, response } }
  }

  /** Merges adjacent contents of one role; results have their own role here, so they stay separate. */
  #append(role: Content['role'], parts: JsonObject[]): void {
    const last = this.#contents.at(-1)
    if (last?.role === role) appendAll(last.parts, parts)
    else if (parts.length > 0) this.#contents.push({ role, parts })
  }

  all(): JsonObject[] {
    if (this.#contents.length === 0) return [{ role: 'user', parts: [{ text: ' ' }] }]
    return this.#contents.map(({ role, parts }) => ({
      role: role === 'function' ? 'user' : role,
      parts,
    }))
  }
}

const modes = { auto: 'AUTO', required: 'ANY', none: 'NONE', tool: 'ANY' } as const

function toolConfig({ toolChoice, tools }: Chat, labels: ToolLabels): JsonObject | undefined {
  // The vendor enforces the schemas of all tools or of none.
  const isStrict = tools.some(({ strict }) => strict === true)
  if (isStrict && (toolChoice === undefined || toolChoice.type === 'auto')) {
    return { functionCallingConfig: { mode: 'VALIDATED' } }
  }
  if (toolChoice === undefined || toolChoice.type === 'search') return undefined
  const names = toolChoice.type === 'tool' ? [labels.name(toolChoice.name)] : undefined
  const config = compact({ mode: modes[toolChoice.type], allowedFunctionNames: names })
  return { functionCallingConfig: config }
}

function tools({ tools: all, webSearch }: Chat, labels: ToolLabels): JsonObject[] | undefined {
  const search = webSearch === undefined ? [] : [writeWebSearch(webSearch)]
  if (all.length === 0) return search.length === 0 ? undefined : search
  const functionDeclarations = all.map(({ name, description, schema }) =>
    compact({
      name: labels.name(name),
      description,
      parametersJsonSchema: parametersSchema(schema),
    }),
  )
  return [{ functionDeclarations }, ...search]
}

/** Rejects searches that are limited to domains, because the vendor's search has no such limit. */
function writeWebSearch({ path, allowedDomains, blockedDomains }: WebSearch): JsonObject {
  if (allowedDomains !== undefined || blockedDomains !== undefined) {
    throw unsupportedPart(path, 'web searches of some domains only')
  }
  return { googleSearch: {} }
}

function thinkingConfig(
  { reasoning, showsThinking = true }: Chat,
  { thinking }: ModelFacts,
): JsonObject | undefined {
  if (reasoning === undefined || thinking === false) return undefined
  const { forms = ['budget'], efforts, budget: limits, mode = 'off' } = thinking ?? {}
  const effort = effortOf(reasoning)
  const isOff = effort === 'none'
  /** Whether the client lets the model decide. */
  const isOpen = reasoning.type === 'adaptive' && reasoning.effort === undefined
  const includeThoughts = showsThinking && !isOff ? true : undefined
  if (forms[0] === 'level') {
    const thinkingLevel = isOpen ? undefined : nearestEffort(effort, efforts)
    return compact({ thinkingLevel, includeThoughts })
  }
  if (isOff) return { thinkingBudget: mode === 'always' ? (limits?.min ?? 0) : 0 }
  const wanted = isOpen ? undefined : budgetOf(reasoning)
  const { min = 0, max = Number.POSITIVE_INFINITY } = limits ?? {}
  const thinkingBudget = wanted && Math.max(min, Math.min(max, wanted))
  return compact({ thinkingBudget, includeThoughts })
}

function generationConfig(chat: Chat, facts: ModelFacts): JsonObject {
  const { output } = chat
  return compact({
    temperature: chat.temperature,
    topP: chat.topP,
    topK: chat.topK,
    frequencyPenalty: chat.frequencyPenalty,
    presencePenalty: chat.presencePenalty,
    maxOutputTokens: chat.maxTokens,
    stopSequences: chat.stop,
    // Only the first candidate of a stream is read, so further ones would be paid for but not used.
    candidateCount: chat.stream ? undefined : chat.choices,
    seed: chat.seed,
    responseMimeType: output === undefined ? undefined : 'application/json',
    responseJsonSchema: output?.type === 'schema' ? jsonSchema(output.schema) : undefined,
    responseModalities: chat.images === true ? ['TEXT', 'IMAGE'] : undefined,
    thinkingConfig: thinkingConfig(chat, facts),
  })
}

/** @throws LlmError 400 for features that the provider does not have. */
export function writeGenerateContentRequest(
  asked: Chat,
  labels: ToolLabels,
  { facts }: WriteOptions,
): JsonObject {
  const chat = withSystemFirst(asked)
  const contents = new Contents(facts, labels)
  for (const turn of chat.turns) contents.add(turn)
  const system = chat.system.map(({ text }) => text).join('\n')
  const config = generationConfig(chat, facts)
  const service = serviceFor(chat, facts)
  const vendorFields = chat.generateContent ?? {}
  // The cached content already has these fields, and the vendor rejects requests that repeat them.
  const isCached = vendorFields.cachedContent !== undefined
  return compact({
    contents: contents.all(),
    systemInstruction: system === '' || isCached ? undefined : { parts: [{ text: system }] },
    tools: isCached ? undefined : tools(chat, labels),
    toolConfig: chat.tools.length === 0 || isCached ? undefined : toolConfig(chat, labels),
    generationConfig: Object.keys(config).length === 0 ? undefined : config,
    serviceTier: service === 'default' ? 'standard' : service,
    ...vendorFields,
  })
}

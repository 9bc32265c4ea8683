/** The common form -> a native request of vendorD. The model stands in the path, not here. */
import {
  type Block,
  type Chat,
  type MediaSource,
  type Reasoning,
  type ToolCallBlock,
  type ToolResultBlock,
  type Turn,
  textOf,
  thinkingBudget,
} from '../../chat.ts'
import { compact, type JsonObject } from '../../json.ts'
import { LlmError } from '../../llm-error.ts'
import { argumentsObject } from '../arguments.ts'
import { signatureOf, standInSignature } from '../thought-signature.ts'
import type { ToolLabels } from '../tool-labels.ts'
import { cleanSchema } from './schema-cleanup.ts'

const mediaTypes: Readonly<Record<string, string>> = {
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  png: 'image/png',
  gif: 'image/gif',
  webp: 'image/webp',
  pdf: 'application/pdf',
}

/** @throws LlmError 400 for a place that the provider cannot read from. */
function mediaPart(source: MediaSource): JsonObject {
  if (source.type === 'data') {
    const mimeType = source.mediaType === 'image/jpg' ? 'image/jpeg' : source.mediaType
    return { inlineData: { mimeType, data: source.data } }
  }
  const { url } = source
  if (!url.startsWith('gs://')) {
    throw new LlmError(400, 'images by URL are not supported by this provider; send their bytes')
  }
  const extension = /\.([a-z0-9]+)$/i.exec(url)?.[1]?.toLowerCase() ?? ''
  const mimeType = source.mediaType ?? mediaTypes[extension]
  if (mimeType === undefined) throw new LlmError(400, `the media type of ${url} is not known`)
  return { fileData: { mimeType, fileUri: url } }
}

function partsOf(block: Block): JsonObject[] {
  switch (block.type) {
    case 'text':
      return block.text.trim() === '' ? [] : [{ text: block.text }]
    case 'image':
    case 'document':
      return [mediaPart(block.source)]
    default:
      return []
  }
}

/** Models of these generations refuse calls in a conversation that are not signed. */
const wantsSignatures = /gemini-(?:[3-9]|\d\d|[a-z-]*latest)/

interface Content {
  readonly role: 'user' | 'model' | 'function'
  readonly parts: JsonObject[]
}

/** Writes turns; remembers the names of calls, because results name the function and not the call. */
class Contents {
  readonly #contents: Content[] = []
  readonly #names = new Map<string, string>()
  /** Ids of the last calls, in their order. */
  #lastCalls: string[] = []
  readonly #labels: ToolLabels
  readonly #wantsSignatures: boolean

  constructor(model: string, labels: ToolLabels) {
    this.#labels = labels
    this.#wantsSignatures = wantsSignatures.test(model)
  }

  add({ role, blocks }: Turn): void {
    if (role === 'assistant') {
      const calls = blocks.filter((block) => block.type === 'tool-call')
      for (const { id, name } of calls) this.#names.set(id, name)
      if (calls.length > 0) this.#lastCalls = calls.map(({ id }) => id)
      const [first] = calls
      this.#append(
        'model',
        blocks.flatMap((block) =>
          block.type === 'tool-call' ? [this.#call(block, block === first)] : partsOf(block),
        ),
      )
      return
    }
    const results = blocks.filter((block) => block.type === 'tool-result')
    if (results.length > 0) this.#results(results)
    const others = blocks.flatMap(partsOf)
    if (others.length > 0 || results.length === 0) {
      this.#append('user', others.length === 0 ? [{ text: ' ' }] : others)
    }
  }

  /** Only the first one of parallel calls is signed. */
  #call({ id, name, input }: ToolCallBlock, isFirst: boolean): JsonObject {
    const standIn = isFirst && this.#wantsSignatures ? standInSignature : undefined
    return compact({
      functionCall: { name: this.#labels.name(name), args: argumentsObject(input) },
      thoughtSignature: signatureOf(id) ?? standIn,
    })
  }

  #results(results: readonly ToolResultBlock[]): void {
    const position = ({ id }: ToolResultBlock) => {
      const at = this.#lastCalls.indexOf(id)
      return at < 0 ? this.#lastCalls.length : at
    }
    const parts = [...results]
      .sort((a, b) => position(a) - position(b))
      .map((result) => {
        const name = this.#labels.name(this.#names.get(result.id) ?? result.id)
        const text = textOf(result.content, '\n')
        const response = result.isError === true ? { error: text } : { content: text }
        return { functionResponse: { name, response } }
      })
    this.#append('function', parts)
  }

  /** Adjacent contents of one role become one; results stay by themselves. */
  #append(role: Content['role'], parts: JsonObject[]): void {
    const last = this.#contents.at(-1)
    if (last?.role === role) last.parts.push(...parts)
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

function toolConfig({ toolChoice }: Chat, labels: ToolLabels): JsonObject | undefined {
  if (toolChoice === undefined) return undefined
  const allowedFunctionNames =
    toolChoice.type === 'tool' ? [labels.name(toolChoice.name)] : undefined
  const mode = modes[toolChoice.type]
  return { functionCallingConfig: compact({ mode, allowedFunctionNames }) }
}

function tools({ tools: all }: Chat, labels: ToolLabels): JsonObject[] | undefined {
  if (all.length === 0) return undefined
  const functionDeclarations = all.map(({ name, description, schema }) =>
    compact({ name: labels.name(name), description, parameters: cleanSchema(schema) }),
  )
  return [{ functionDeclarations }]
}

const levels: Readonly<Record<string, string>> = { xhigh: 'high', max: 'high' }

function thinkingConfig(reasoning: Reasoning | undefined, model: string): JsonObject | undefined {
  if (reasoning === undefined) return undefined
  if (reasoning.type === 'off') return { thinkingBudget: 0 }
  const effort = 'effort' in reasoning ? reasoning.effort : undefined
  if (model.includes('gemini-3') && effort !== undefined) {
    return { thinkingLevel: levels[effort] ?? effort, includeThoughts: true }
  }
  const budget = thinkingBudget(reasoning)
  return budget === undefined
    ? { includeThoughts: true }
    : { thinkingBudget: budget, includeThoughts: true }
}

function generationConfig(chat: Chat): JsonObject {
  const { output } = chat
  return compact({
    temperature: chat.temperature,
    topP: chat.topP,
    topK: chat.topK,
    frequencyPenalty: chat.frequencyPenalty,
    presencePenalty: chat.presencePenalty,
    maxOutputTokens: chat.maxTokens,
    stopSequences: chat.stop,
    // Of a stream the first one is told: nobody is to pay for others.
    candidateCount: chat.stream ? undefined : chat.choices,
    seed: chat.seed,
    responseMimeType: output === undefined ? undefined : 'application/json',
    responseSchema: output?.type === 'schema' ? cleanSchema(output.schema) : undefined,
    thinkingConfig: thinkingConfig(chat.reasoning, chat.model),
  })
}

/** @throws LlmError 400 for what the provider cannot take. */
export function writeGenerateContentRequest(chat: Chat, labels: ToolLabels): JsonObject {
  const contents = new Contents(chat.model, labels)
  for (const turn of chat.turns) contents.add(turn)
  const system = chat.system.map(({ text }) => text).join('\n')
  const config = generationConfig(chat)
  const own = chat.ofVendorD ?? {}
  // What is cached has them already, and the vendor refuses them beside it.
  const isCached = own.cachedContent !== undefined
  return compact({
    contents: contents.all(),
    systemInstruction: system === '' || isCached ? undefined : { parts: [{ text: system }] },
    tools: isCached ? undefined : tools(chat, labels),
    toolConfig: chat.tools.length === 0 || isCached ? undefined : toolConfig(chat, labels),
    generationConfig: Object.keys(config).length === 0 ? undefined : config,
    ...own,
  })
}

/** Converts the common form to a Converse request of vendor F, which has the model in its path. */
import { appendAll } from '../../../../ground/base/append-all.ts'
import type { ModelFacts } from '../../catalog/facts.ts'
import {
  type Block,
  type CacheLifetime,
  type Chat,
  hasToolBlocks,
  type OutputFormat,
  type ResultPart,
  type TextBlock,
  type Tool,
  type ToolChoice,
  type Turn,
  unavailableTool,
  withSystemFirst,
} from '../../chat.ts'
import { argumentsObject } from '../../common/arguments.ts'
import { closedSchema } from '../../common/closed-schema.ts'
import { effortOf, nearestEffort } from '../../common/effort.ts'
import { fileNameOf } from '../../common/media.ts'
import { serviceFor } from '../../common/service.ts'
import type { ToolLabels } from '../../common/tool-labels.ts'
import type { WriteOptions } from '../../format.ts'
import { compact, isObject, type JsonObject, listAt } from '../../json/json.ts'
import { unsupportedPart } from '../../llm-error.ts'
import { ownSignature, settleThinking, type Thinking } from '../messages/thinking.ts'
import { enforcedSchema, systemOf } from '../messages/write-request.ts'
import { type CachePoints, maxCachePoints, policyPoints } from './caching.ts'
import { DocumentNames, writeAudio, writeDocument, writeImage } from './media.ts'

const emptyResult = '(no output)'

/** Writes the parts of one request and limits the number of its cache points. */
class ConverseWriter {
  readonly #labels: ToolLabels
  readonly #facts: ModelFacts
  readonly #documents = new DocumentNames()
  #points = 0

  constructor(labels: ToolLabels, facts: ModelFacts) {
    this.#labels = labels
    this.#facts = facts
  }

  /** Returns a cache point, or nothing if the request already has the maximum number, or if the model has none. */
  point(lifetime: CacheLifetime = '5m'): JsonObject[] {
    const { cacheLifetimes } = this.#facts
    if (this.#points === maxCachePoints || cacheLifetimes?.length === 0) return []
    this.#points++
    const ttl = lifetime === '1h' && cacheLifetimes?.includes(lifetime) ? lifetime : undefined
    return [{ cachePoint: compact({ type: 'default', ttl }) }]
  }

  system(chat: Chat, points: CachePoints): JsonObject[] {
    const system = systemOf(chat)
    const hasOwn = system.some(({ cache }) => cache !== undefined)
    if (!hasOwn) {
      const text = system.map((block) => block.text).join('\n')
      return [...(text === '' ? [] : [{ text }]), ...(points.system ? this.point() : [])]
    }
    return system.flatMap((block) => this.text(block))
  }

  text({ text, cache }: TextBlock): JsonObject[] {
    const written = text.trim() === '' ? [] : [{ text }]
    return cache === undefined ? written : [...written, ...this.point(cache)]
  }

  block(block: Block): JsonObject[] {
    const written = this.#withoutPoint(block)
    const cache = block.type !== 'text' && 'cache' in block ? block.cache : undefined
    return cache === undefined ? written : [...written, ...this.point(cache)]
  }

  #withoutPoint(block: Block): JsonObject[] {
    switch (block.type) {
      case 'text':
        return this.text(block)
      case 'image':
        return [writeImage(block)]
      case 'document':
        return [writeDocument(block, this.#documents)]
      case 'audio':
        return [writeAudio(block)]
      case 'search-result': {
        const { title, source, texts } = block
        return [{ searchResult: { title, source, content: texts.map((text) => ({ text })) } }]
      }
      case 'tool-call': {
        const toolUseId = this.#labels.callId(block.id)
        const name = this.#labels.name(block.name)
        return [{ toolUse: { toolUseId, name, input: argumentsObject(block.input) } }]
      }
      case 'tool-result': {
        const parts = block.content.flatMap((part) => this.#resultPart(part))
        const content = parts.length === 0 ? [{ text: emptyResult }] : parts
        const status = block.isError === undefined ? undefined : statusOf(block.isError)
        const toolUseId = this.#labels.resultId(block.id)
        return [{ toolResult: compact({ toolUseId, content, status }) }]
      }
      case 'thinking': {
        // The provider rejects thinking without its own signature, so it is dropped.
        const signature = ownSignature(block)
        const { text } = block
        return signature ? [{ reasoningContent: { reasoningText: { text, signature } } }] : []
      }
      case 'redacted-thinking':
        return [{ reasoningContent: { redactedContent: base64Of(block.data) } }]
    }
  }

  /** Writes a part of a tool result, which may contain neither audio nor cache points. */
  #resultPart(part: ResultPart): JsonObject[] {
    if (part.type === 'audio') throw unsupportedPart(part.path, 'audio parts in results of tools')
    if (part.type !== 'text') return this.#withoutPoint(part)
    return part.text.trim() === '' ? [] : [{ text: part.text }]
  }

  /** Merges turns of one role into one message, because the provider requires alternating roles. */
  messages(
    turns: readonly Turn[],
    points: CachePoints,
    cache: CacheLifetime | undefined,
  ): JsonObject[] {
    const messages: WrittenMessage[] = []
    for (const [position, { role, blocks }] of turns.entries()) {
      const content = blocks.flatMap((block) => this.block(block))
      const files = blocks.filter((block) => block.type === 'document').map(fileNameOf)
      if (points.turns.has(position)) appendAll(content, this.point())
      const last = messages.at(-1)
      if (last?.role === role) {
        appendAll(last.content, content)
        appendAll(last.files, files)
      } else if (content.length > 0) messages.push({ role, content, files })
    }
    const last = messages.at(-1)
    if (cache !== undefined && last !== undefined) appendAll(last.content, this.point(cache))
    return messages.map(settleMessage)
  }

  toolConfig(chat: Chat, points: CachePoints): JsonObject | undefined {
    // Without a choice that forbids calls, the only way is to show no tool.
    const isForbidden = chat.toolChoice?.type === 'none'
    const tools = isForbidden ? [] : chat.tools.flatMap((tool) => this.#tool(tool))
    if (tools.length === 0) {
      // The provider requires a tool if the history has tool calls.
      if (!hasToolBlocks(chat)) return undefined
      const inputSchema = { json: { type: 'object' } }
      return { tools: [{ toolSpec: { name: unavailableTool, inputSchema } }] }
    }
    if (points.tools) appendAll(tools, this.point())
    return compact({ tools, toolChoice: this.#choice(chat.toolChoice) })
  }

  #tool({ name, description: text, schema, cache, strict: wanted }: Tool): JsonObject[] {
    // An empty description is refused.
    const description = text === '' ? undefined : text
    // Other models refuse the field, even if it is false.
    const strict = wanted === true && this.#facts.strictTools === true ? true : undefined
    const inputSchema = { json: strict === true ? closedSchema(schema) : schema }
    const toolSpec = compact({ name: this.#labels.name(name), description, inputSchema, strict })
    return [{ toolSpec }, ...(cache === undefined ? [] : this.point(cache))]
  }

  #choice(choice: ToolChoice | undefined): JsonObject | undefined {
    if (choice?.type === 'tool') return { tool: { name: this.#labels.name(choice.name) } }
    if (choice?.type === 'required') return { any: {} }
    return choice?.type === 'auto' ? { auto: {} } : undefined
  }
}

interface WrittenMessage {
  readonly role: Turn['role']
  readonly content: JsonObject[]
  /** Names of the documents in the content. */
  readonly files: string[]
}

/**
 * Puts tool results first, as the provider requires. It allows documents beside a text, but not beside results, so
 * that they become a part of the last result.
 */
function settleMessage({ role, content, files }: WrittenMessage): JsonObject {
  const results = content.flatMap(({ toolResult }) => (isObject(toolResult) ? [toolResult] : []))
  const last = results.pop()
  if (last === undefined) {
    const isNamed = files.length === 0 || content.some(({ text }) => text !== undefined)
    return { role, content: isNamed ? content : [{ text: files.join('\n') }, ...content] }
  }
  const documents = content.filter(({ document }) => document !== undefined)
  const whole = { ...last, content: [...listAt(last, 'content'), ...documents] }
  const others = content.filter(
    ({ toolResult, document }) => toolResult === undefined && document === undefined,
  )
  const written = [...results, whole].map((toolResult) => ({ toolResult }))
  return { role, content: [...written, ...others.filter(isNotRepeated)] }
}

/** Returns false for a cache point right after another one, which has no effect of its own. */
const isNotRepeated = (block: JsonObject, at: number, all: readonly JsonObject[]): boolean =>
  block.cachePoint === undefined || all[at - 1]?.cachePoint === undefined

const statusOf = (isError: boolean): string => (isError ? 'error' : 'success')

/** Thinking of a request, with the fields of the model's own format that ask for it. */
interface ModelThinking extends Pick<Thinking, 'turns' | 'isOn'> {
  readonly fields: JsonObject
  /** Whether the model refuses a limit of the output. */
  readonly refusesLimit?: boolean
}

function thinkingOf(chat: Chat, facts: ModelFacts): ModelThinking {
  const { turns, reasoning, maxTokens } = chat
  const { thinking } = facts
  const form = thinking ? thinking.forms[0] : undefined
  if (form === 'adaptive' || form === 'budget') {
    const most = maxTokens ?? facts.limits?.output ?? Number.POSITIVE_INFINITY
    const { field, effort, ...settled } = settleThinking(chat, facts, most)
    const output_config = effort === undefined ? undefined : { effort }
    return { ...settled, fields: compact({ thinking: field, output_config }) }
  }
  if (!thinking || reasoning === undefined) return { turns, isOn: false, fields: {} }
  const effort = nearestEffort(effortOf(reasoning), thinking.efforts)
  if (form !== 'nova') return { turns, isOn: false, fields: { reasoning_effort: effort } }
  const isOff = effortOf(reasoning) === 'none'
  const config = isOff ? { type: 'disabled' } : { type: 'enabled', maxReasoningEffort: effort }
  const refusesLimit = !isOff && effort === 'high'
  return { turns, isOn: false, refusesLimit, fields: { reasoningConfig: config } }
}

const base64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

/** Converse transfers bytes as base64. Data that is already base64 came from this provider. */
const base64Of = (data: string): string =>
  base64.test(data) ? data : Buffer.from(data).toString('base64')

function textFormat(output: OutputFormat | undefined, facts: ModelFacts): JsonObject | undefined {
  const enforced = enforcedSchema(output, facts)
  if (output?.type !== 'schema' || enforced === undefined) return undefined
  const { name = 'structured_output', description } = output
  const jsonSchema = compact({ schema: JSON.stringify(enforced), name, description })
  return { textFormat: { type: 'json_schema', structure: { jsonSchema } } }
}

/** Returns undefined instead of an empty object or list. */
const unlessEmpty = <Value extends object>(value: Value): Value | undefined =>
  Object.keys(value).length === 0 ? undefined : value

/** @throws LlmError 400 for features that the provider does not have. */
export function writeConverseRequest(
  asked: Chat,
  options: WriteOptions,
  labels: ToolLabels,
): JsonObject {
  const chat = withSystemFirst(asked)
  if ((chat.choices ?? 1) > 1) throw unsupportedPart('n', 'several choices')
  if (chat.webSearch !== undefined && chat.webSearch.isOptional !== true) {
    throw unsupportedPart(chat.webSearch.path, 'web searches')
  }
  if (chat.images === true) throw unsupportedPart('modalities', 'images in responses')
  const writer = new ConverseWriter(labels, options.facts)
  const points = policyPoints(chat, options)
  const { isOn, turns, fields, refusesLimit } = thinkingOf(chat, options.facts)
  const allowsSampling = !isOn
  const { guardrail } = options
  const service = serviceFor(chat, options.facts)
  return compact({
    system: unlessEmpty(writer.system(chat, points)),
    messages: writer.messages(turns, points, chat.cache),
    inferenceConfig: unlessEmpty(
      compact({
        maxTokens: refusesLimit === true ? undefined : chat.maxTokens,
        temperature: allowsSampling ? chat.temperature : undefined,
        topP: allowsSampling ? chat.topP : undefined,
        stopSequences: chat.stop,
      }),
    ),
    toolConfig: writer.toolConfig(chat, points),
    additionalModelRequestFields: unlessEmpty(
      compact({
        top_k: allowsSampling ? chat.topK : undefined,
        ...fields,
        ...options.additional,
      }),
    ),
    guardrailConfig: guardrail && {
      guardrailIdentifier: guardrail.identifier,
      guardrailVersion: guardrail.version,
      trace: 'enabled',
    },
    outputConfig: textFormat(chat.output, options.facts),
    requestMetadata: options.requestMetadata,
    serviceTier: service && { type: service },
  })
}

/** Converts the common form to a Converse request of vendor F, which has the model in its path. */
import {
  type Block,
  type Chat,
  hasToolBlocks,
  type OutputFormat,
  type ResultPart,
  type TextBlock,
  type Tool,
  type ToolChoice,
  type Turn,
  unavailableTool,
} from '../../chat.ts'
import { argumentsObject } from '../../common/arguments.ts'
import { fileNameOf } from '../../common/media.ts'
import type { ToolLabels } from '../../common/tool-labels.ts'
import { compact, type JsonObject } from '../../json/json.ts'
import { unsupportedPart } from '../../llm-error.ts'
import { settleThinking, type Thinking } from '../messages/thinking.ts'
import { defaultMaxTokens, schemaOf } from '../messages/write-request.ts'
import { type CachePoints, type CachingPolicy, maxCachePoints, policyPoints } from './caching.ts'
import { DocumentNames, writeAudio, writeDocument, writeImage } from './media.ts'

export interface ConverseOptions {
  readonly guardrail?: { readonly identifier: string; readonly version: string }
  readonly caching?: CachingPolicy
  /** Scalars that the provider adds to its logs. */
  readonly requestMetadata?: JsonObject
  /** Fields to add to `additionalModelRequestFields`. */
  readonly additional?: JsonObject
}

const cachePoint = { cachePoint: { type: 'default' } }

/** Writes the parts of one request and limits the number of its cache points. */
class ConverseWriter {
  readonly #labels: ToolLabels
  readonly #documents = new DocumentNames()
  #points = 0

  constructor(labels: ToolLabels) {
    this.#labels = labels
  }

  /** Returns a cache point, or nothing if the request already has the maximum number. */
  point(): JsonObject[] {
    if (this.#points === maxCachePoints) return []
    this.#points++
    return [cachePoint]
  }

  system({ system }: Chat, points: CachePoints): JsonObject[] {
    const hasOwn = system.some(({ cache }) => cache === true)
    if (!hasOwn) {
      const text = system.map((block) => block.text).join('\n')
      return [...(text === '' ? [] : [{ text }]), ...(points.system ? this.point() : [])]
    }
    return system.flatMap((block) => this.text(block))
  }

  text({ text, cache }: TextBlock): JsonObject[] {
    const written = text.trim() === '' ? [] : [{ text }]
    return cache === true ? [...written, ...this.point()] : written
  }

  block(block: Block): JsonObject[] {
    const written = this.#withoutPoint(block)
    const wantsPoint = block.type !== 'text' && 'cache' in block && block.cache === true
    return wantsPoint ? [...written, ...this.point()] : written
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
        const content = block.content.flatMap((part) => this.#resultPart(part))
        const status = block.isError === undefined ? undefined : statusOf(block.isError)
        const toolUseId = this.#labels.resultId(block.id)
        return [{ toolResult: compact({ toolUseId, content, status }) }]
      }
      case 'thinking': {
        // The provider rejects thinking without a signature, so it is dropped.
        const { text, signature } = block
        return signature ? [{ reasoningContent: { reasoningText: { text, signature } } }] : []
      }
      case 'redacted-thinking':
        return [{ reasoningContent: { redactedContent: base64Of(block.data) } }]
    }
  }

  /** Writes a part of a tool result, which may contain neither audio nor cache points. */
  #resultPart(part: ResultPart): JsonObject[] {
    if (part.type === 'audio') throw unsupportedPart(part.path, 'audio parts in results of tools')
    return part.type === 'text' ? [{ text: part.text }] : this.#withoutPoint(part)
  }

  /** Merges turns of one role into one message, because the provider requires alternating roles. */
  messages(turns: readonly Turn[], points: CachePoints): JsonObject[] {
    const messages: { role: Turn['role']; content: JsonObject[] }[] = []
    for (const [position, { role, blocks }] of turns.entries()) {
      const content = blocks.flatMap((block) => this.block(block))
      // The provider rejects documents without a text in the same message.
      const documents = blocks.filter((block) => block.type === 'document')
      if (documents.length > 0 && !content.some(({ text }) => text !== undefined)) {
        content.unshift({ text: documents.map(fileNameOf).join('\n') })
      }
      if (points.turns.has(position)) content.push(...this.point())
      const last = messages.at(-1)
      if (last?.role === role) last.content.push(...content)
      else if (content.length > 0) messages.push({ role, content })
    }
    return messages
  }

  toolConfig(chat: Chat, points: CachePoints): JsonObject | undefined {
    const tools = chat.tools.flatMap((tool) => this.#tool(tool))
    if (tools.length === 0) {
      // The provider requires a tool if the history has tool calls.
      if (!hasToolBlocks(chat)) return undefined
      const inputSchema = { json: { type: 'object' } }
      return { tools: [{ toolSpec: { name: unavailableTool, inputSchema } }] }
    }
    if (points.tools) tools.push(...this.point())
    return compact({ tools, toolChoice: this.#choice(chat.toolChoice) })
  }

  #tool({ name, description, schema, cache }: Tool): JsonObject[] {
    const inputSchema = { json: schema }
    const toolSpec = compact({ name: this.#labels.name(name), description, inputSchema })
    return [{ toolSpec }, ...(cache === true ? this.point() : [])]
  }

  #choice(choice: ToolChoice | undefined): JsonObject | undefined {
    if (choice?.type === 'tool') return { tool: { name: this.#labels.name(choice.name) } }
    if (choice?.type === 'required') return { any: {} }
    return choice?.type === 'auto' ? { auto: {} } : undefined
  }
}

const statusOf = (isError: boolean): string => (isError ? 'error' : 'success')

/** Model families that do not support the thinking field of vendor C. */
const otherFamily =
  /(?:^|[./])(?:ai21|amazon|cohere|deepseek|google|meta|minimax|mistral|moonshot|nvidia|openai|qwen|stability|twelvelabs|writer|zai)\./

function thinkingOf(chat: Chat, maxTokens: number): Thinking {
  return otherFamily.test(chat.model)
    ? { field: undefined, turns: chat.turns }
    : settleThinking(chat, maxTokens)
}

const base64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

/** Converse transfers bytes as base64. Data that is already base64 came from this provider. */
const base64Of = (data: string): string =>
  base64.test(data) ? data : Buffer.from(data).toString('base64')

function textFormat(output: OutputFormat | undefined): JsonObject | undefined {
  if (output === undefined) return undefined
  const schema = JSON.stringify(schemaOf(output))
  const { name, description } = output.type === 'schema' ? output : {}
  const jsonSchema = compact({ schema, name: name ?? 'structured_output', description })
  return { textFormat: { type: 'json_schema', structure: { jsonSchema } } }
}

/** Returns undefined instead of an empty object or list. */
const unlessEmpty = <Value extends object>(value: Value): Value | undefined =>
  Object.keys(value).length === 0 ? undefined : value

/** @throws LlmError 400 for features that the provider does not have. */
export function writeConverseRequest(
  chat: Chat,
  options: ConverseOptions,
  labels: ToolLabels,
): JsonObject {
  if (chat.webSearch !== undefined) throw unsupportedPart(chat.webSearch.path, 'web searches')
  if (chat.images === true) throw unsupportedPart('modalities', 'images in responses')
  const writer = new ConverseWriter(labels)
  const points = policyPoints(chat, options.caching)
  const maxTokens = chat.maxTokens ?? defaultMaxTokens
  const { field: thinking, turns } = thinkingOf(chat, maxTokens)
  const allowsSampling = thinking === undefined
  const effort = chat.reasoning?.type === 'adaptive' ? chat.reasoning.effort : undefined
  const { guardrail } = options
  return compact({
    system: unlessEmpty(writer.system(chat, points)),
    messages: writer.messages(turns, points),
    inferenceConfig: compact({
      maxTokens,
      temperature: allowsSampling ? chat.temperature : undefined,
      topP: allowsSampling ? chat.topP : undefined,
      stopSequences: chat.stop,
    }),
    toolConfig: writer.toolConfig(chat, points),
    additionalModelRequestFields: unlessEmpty(
      compact({
        top_k: allowsSampling ? chat.topK : undefined,
        thinking,
        output_config: effort === undefined ? undefined : { effort },
        ...options.additional,
      }),
    ),
    guardrailConfig: guardrail && {
      guardrailIdentifier: guardrail.identifier,
      guardrailVersion: guardrail.version,
      trace: 'enabled',
    },
    outputConfig: textFormat(chat.output),
    requestMetadata: options.requestMetadata,
  })
}

/** The common form -> a Converse request of vendorF. The model stands in the path, not here. */
import {
  type Block,
  type Chat,
  hasToolBlocks,
  type OutputFormat,
  type ResultPart,
  type SearchResultBlock,
  type TextBlock,
  type Tool,
  type ToolChoice,
  type Turn,
  unavailableTool,
} from '../../chat.ts'
import { compact, type JsonObject } from '../../json.ts'
import { argumentsObject } from '../arguments.ts'
import { fileNameOf } from '../media.ts'
import { settleThinking, type Thinking } from '../messages/thinking.ts'
import { defaultMaxTokens } from '../messages/write-request.ts'
import type { ToolLabels } from '../tool-labels.ts'
import { unsupportedPart } from '../unsupported-part.ts'
import { type CachePoints, type CachingPolicy, maxCachePoints, policyPoints } from './caching.ts'
import { DocumentNames, writeAudio, writeDocument, writeImage } from './media.ts'

export interface ConverseOptions {
  readonly guardrail?: { readonly identifier: string; readonly version: string }
  readonly caching?: CachingPolicy
  /** Scalars that the client wants to find in the provider's logs. */
  readonly requestMetadata?: JsonObject
  /** Further `additionalModelRequestFields`. */
  readonly additional?: JsonObject
}

const cachePoint = { cachePoint: { type: 'default' } }

/** Writes one request; counts its cache points, of which the provider takes only so many. */
class ConverseWriter {
  readonly #labels: ToolLabels
  readonly #documents = new DocumentNames()
  #points = 0

  constructor(labels: ToolLabels) {
    this.#labels = labels
  }

  /** A cache point, while there is room for one. */
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
    const written = this.#bare(block)
    const wantsPoint = block.type !== 'text' && 'cache' in block && block.cache === true
    return wantsPoint ? [...written, ...this.point()] : written
  }

  #bare(block: Block): JsonObject[] {
    switch (block.type) {
      case 'text':
        return this.text(block)
      case 'image':
        return [writeImage(block)]
      case 'document':
        return [writeDocument(block, this.#documents)]
      case 'audio':
        return [writeAudio(block)]
      case 'search-result':
        return [writeSearchResult(block)]
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
        // Without its signature the provider refuses it.
        const { text, signature } = block
        return signature ? [{ reasoningContent: { reasoningText: { text, signature } } }] : []
      }
      case 'redacted-thinking':
        return [{ reasoningContent: { redactedContent: base64Of(block.data) } }]
    }
  }

  /** Results may have neither audio nor cache points in them. */
  #resultPart(part: ResultPart): JsonObject[] {
    if (part.type === 'audio') throw unsupportedPart(part.path, 'audio parts in results of tools')
    return part.type === 'text' ? [{ text: part.text }] : this.#bare(part)
  }

  /** The provider demands that roles alternate: turns of one role become one message. */
  messages(turns: readonly Turn[], points: CachePoints): JsonObject[] {
    const messages: { role: Turn['role']; content: JsonObject[] }[] = []
    for (const [position, { role, blocks }] of turns.entries()) {
      const content = blocks.flatMap((block) => this.block(block))
      // The provider refuses documents that no text comes with.
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
      // A history with calls needs at least one tool, whatever it is.
      if (!hasToolBlocks(chat)) return undefined
      const inputSchema = { json: { type: 'object' } }
      return { tools: [{ toolSpec: { name: unavailableTool, inputSchema } }] }
    }
    if (points.tools) tools.push(...this.point())
    return compact({ tools, toolChoice: this.#choice(chat.toolChoice) })
  }

  #tool({ name, description, schema, cache }: Tool): JsonObject[] {
    const spec = compact({
      name: this.#labels.name(name),
      description,
      inputSchema: { json: schema },
    })
    return [{ toolSpec: spec }, ...(cache === true ? this.point() : [])]
  }

  #choice(choice: ToolChoice | undefined): JsonObject | undefined {
    switch (choice?.type) {
      case 'auto':
        return { auto: {} }
      case 'required':
        return { any: {} }
      case 'tool':
        return { tool: { name: this.#labels.name(choice.name) } }
      default:
        return undefined
    }
  }
}

function writeSearchResult({ title, source, texts }: SearchResultBlock): JsonObject {
  return { searchResult: { title, source, content: texts.map((text) => ({ text })) } }
}

const statusOf = (isError: boolean): string => (isError ? 'error' : 'success')

/** Families whose models know nothing of the field by which those of vendorC's think. */
const otherFamily =
  /(?:^|[./])(?:ai21|amazon|cohere|deepseek|google|meta|minimax|mistral|moonshot|nvidia|openai|qwen|stability|twelvelabs|writer|zai)\./

function thinkingOf(chat: Chat, maxTokens: number): Thinking {
  return otherFamily.test(chat.model)
    ? { field: undefined, turns: chat.turns }
    : settleThinking(chat, maxTokens)
}

const base64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

/** Bytes travel as base64; what is already in that form came from the provider so. */
const base64Of = (data: string): string =>
  base64.test(data) ? data : Buffer.from(data).toString('base64')

function textFormat(output: OutputFormat | undefined): JsonObject | undefined {
  if (output === undefined) return undefined
  const any = { type: 'object', additionalProperties: true }
  const {
    name = 'structured_output',
    description,
    schema,
  } = output.type === 'schema' ? output : { name: undefined, description: undefined, schema: any }
  const jsonSchema = compact({ schema: JSON.stringify(schema), name, description })
  return { textFormat: { type: 'json_schema', structure: { jsonSchema } } }
}

const orNothing = (fields: JsonObject): JsonObject | undefined =>
  Object.keys(fields).length === 0 ? undefined : fields

/** @throws LlmError 400 for what the provider cannot take. */
export function writeConverseRequest(
  chat: Chat,
  options: ConverseOptions,
  labels: ToolLabels,
): JsonObject {
  if (chat.webSearch !== undefined) throw unsupportedPart(chat.webSearch.path, 'web searches')
  if (chat.images === true) throw unsupportedPart('modalities', 'images in answers')
  const writer = new ConverseWriter(labels)
  const points = policyPoints(chat, options.caching)
  const maxTokens = chat.maxTokens ?? defaultMaxTokens
  const { field: thinking, turns } = thinkingOf(chat, maxTokens)
  const samples = thinking === undefined
  const effort = chat.reasoning?.type === 'adaptive' ? chat.reasoning.effort : undefined
  const { guardrail } = options
  return compact({
    system: orAbsent(writer.system(chat, points)),
    messages: writer.messages(turns, points),
    inferenceConfig: compact({
      maxTokens,
      temperature: samples ? chat.temperature : undefined,
      topP: samples ? chat.topP : undefined,
      stopSequences: chat.stop,
    }),
    toolConfig: writer.toolConfig(chat, points),
    additionalModelRequestFields: orNothing(
      compact({
        top_k: samples ? chat.topK : undefined,
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

const orAbsent = (list: readonly JsonObject[]): readonly JsonObject[] | undefined =>
  list.length === 0 ? undefined : list

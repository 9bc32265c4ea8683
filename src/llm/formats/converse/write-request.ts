/** The common form -> a Converse request of vendorF. The model stands in the path, not here. */
import {
  type Block,
  type Chat,
  type ImageBlock,
  type MediaSource,
  type OutputFormat,
  type TextBlock,
  type Tool,
  type ToolChoice,
  type Turn,
  thinkingBudget,
} from '../../chat.ts'
import { compact, isObject, type JsonObject } from '../../json.ts'
import { LlmError } from '../../llm-error.ts'
import { defaultMaxTokens } from '../messages/write-request.ts'
import { type CachePoints, type CachingPolicy, maxCachePoints, policyPoints } from './caching.ts'
import { DocumentNames, documentFormat } from './documents.ts'
import { ToolNames } from './tool-names.ts'

export interface ConverseOptions {
  readonly guardrail?: { readonly identifier: string; readonly version: string }
  readonly caching?: CachingPolicy
  /** Scalars that the client wants to find in the provider's logs. */
  readonly requestMetadata?: JsonObject
  /** Further `additionalModelRequestFields`. */
  readonly additional?: JsonObject
}

export interface ConverseRequest {
  readonly body: JsonObject
  /** For reading the answer. */
  readonly toolNames: ToolNames
}

const cachePoint = { cachePoint: { type: 'default' } }

const imageFormats: Readonly<Record<string, string>> = {
  'image/png': 'png',
  'image/jpeg': 'jpeg',
  'image/jpg': 'jpeg',
  'image/gif': 'gif',
  'image/webp': 'webp',
}

/** @throws LlmError 400 for an image that the provider would have to fetch. */
function bytesOf(source: MediaSource, what: string): { mediaType: string; bytes: string } {
  if (source.type === 'url') {
    throw new LlmError(400, `${what} by URL is not supported by this provider; send its bytes`)
  }
  return { mediaType: source.mediaType, bytes: source.data }
}

function writeImage({ source }: ImageBlock): JsonObject {
  const { mediaType, bytes } = bytesOf(source, 'an image')
  const format = imageFormats[mediaType.toLowerCase()]
  if (format === undefined) throw new LlmError(400, `images of type ${mediaType} are not supported`)
  return { image: { format, source: { bytes } } }
}

/** Writes one request; counts its cache points, of which the provider takes only so many. */
class ConverseWriter {
  readonly toolNames = new ToolNames()
  readonly #documents = new DocumentNames()
  #points = 0

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
    const wantsPoint = block.type !== 'thinking' && block.type !== 'text' && block.cache === true
    return wantsPoint ? [...written, ...this.point()] : written
  }

  #bare(block: Block): JsonObject[] {
    switch (block.type) {
      case 'text':
        return this.text(block)
      case 'image':
        return [writeImage(block)]
      case 'document': {
        const { mediaType, bytes } = bytesOf(block.source, 'a document')
        const format = documentFormat(mediaType, block.name)
        const name = this.#documents.next(block.name ?? 'document')
        return [{ document: { format, name, source: { bytes } } }]
      }
      case 'tool-call': {
        const input = isObject(block.input) ? block.input : {}
        const name = this.toolNames.encode(block.name)
        return [{ toolUse: { toolUseId: block.id, name, input } }]
      }
      case 'tool-result': {
        const content = block.content.flatMap((part) =>
          part.type === 'image' ? [writeImage(part)] : [{ text: part.text }],
        )
        const status = block.isError === undefined ? undefined : statusOf(block.isError)
        return [{ toolResult: compact({ toolUseId: block.id, content, status }) }]
      }
      case 'thinking': {
        const { text, signature } = block
        return [{ reasoningContent: { reasoningText: compact({ text, signature }) } }]
      }
    }
  }

  /** The provider demands that roles alternate: turns of one role become one message. */
  messages(turns: readonly Turn[], points: CachePoints): JsonObject[] {
    const messages: { role: Turn['role']; content: JsonObject[] }[] = []
    for (const [position, { role, blocks }] of turns.entries()) {
      const content = blocks.flatMap((block) => this.block(block))
      if (points.turns.has(position)) content.push(...this.point())
      const last = messages.at(-1)
      if (last?.role === role) last.content.push(...content)
      else if (content.length > 0) messages.push({ role, content })
    }
    return messages
  }

  toolConfig(chat: Chat, points: CachePoints, forced: boolean): JsonObject | undefined {
    const tools = chat.tools.flatMap((tool) => this.#tool(tool))
    if (tools.length === 0) {
      // A history with calls needs at least one tool, whatever it is.
      if (!hasToolBlocks(chat.turns)) return undefined
      const inputSchema = { json: { type: 'object' } }
      return { tools: [{ toolSpec: { name: 'unavailable', inputSchema } }] }
    }
    if (points.tools) tools.push(...this.point())
    const choice = forced ? ({ type: 'required' } as const) : chat.toolChoice
    return compact({ tools, toolChoice: this.#choice(choice) })
  }

  #tool({ name, description, schema, cache }: Tool): JsonObject[] {
    const spec = compact({
      name: this.toolNames.encode(name),
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
        return { tool: { name: this.toolNames.encode(choice.name) } }
      default:
        return undefined
    }
  }
}

const statusOf = (isError: boolean): string => (isError ? 'error' : 'success')

const hasToolBlocks = (turns: readonly Turn[]): boolean =>
  turns.some(({ blocks }) =>
    blocks.some(({ type }) => type === 'tool-call' || type === 'tool-result'),
  )

function thinkingOf({ reasoning }: Chat, maxTokens: number): JsonObject | undefined {
  if (reasoning?.type === 'adaptive') return { type: 'adaptive' }
  if (reasoning?.type === 'off') return undefined
  const wanted = thinkingBudget(reasoning)
  const budget = wanted === undefined ? 0 : Math.min(wanted, maxTokens - 1)
  return budget < 1024 ? undefined : { type: 'enabled', budget_tokens: budget }
}

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
export function writeConverseRequest(chat: Chat, options: ConverseOptions): ConverseRequest {
  const writer = new ConverseWriter()
  const points = policyPoints(chat, options.caching)
  const maxTokens = chat.maxTokens ?? defaultMaxTokens
  const thinking = thinkingOf(chat, maxTokens)
  const samples = thinking === undefined
  const isMessagesForced = thinking?.type === 'enabled' && chat.toolChoice?.type === 'tool'
  const effort = chat.reasoning?.type === 'adaptive' ? chat.reasoning.effort : undefined
  const { guardrail } = options
  const body = compact({
    system: orAbsent(writer.system(chat, points)),
    messages: writer.messages(chat.turns, points),
    inferenceConfig: compact({
      maxTokens,
      temperature: samples ? chat.temperature : undefined,
      topP: samples ? chat.topP : undefined,
      stopSequences: chat.stop,
    }),
    toolConfig: writer.toolConfig(chat, points, isMessagesForced),
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
  return { body, toolNames: writer.toolNames }
}

const orAbsent = (list: readonly JsonObject[]): readonly JsonObject[] | undefined =>
  list.length === 0 ? undefined : list

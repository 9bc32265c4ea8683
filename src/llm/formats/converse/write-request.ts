/** The common form -> a Converse request of vendorF. The model stands in the path, not here. */
import type {
  Block,
  Chat,
  ImageBlock,
  MediaSource,
  OutputFormat,
  TextBlock,
  Tool,
  ToolChoice,
  Turn,
} from '../../chat.ts'
import { compact, type JsonObject } from '../../json.ts'
import { LlmError } from '../../llm-error.ts'
import { argumentsObject } from '../arguments.ts'
import { settleThinking, type Thinking } from '../messages/thinking.ts'
import { defaultMaxTokens } from '../messages/write-request.ts'
import type { ToolLabels } from '../tool-labels.ts'
import { type CachePoints, type CachingPolicy, maxCachePoints, policyPoints } from './caching.ts'
import { DocumentNames, documentFormat } from './documents.ts'

export interface ConverseOptions {
  readonly guardrail?: { readonly identifier: string; readonly version: string }
  readonly caching?: CachingPolicy
  /** Scalars that the client wants to find in the provider's logs. */
  readonly requestMetadata?: JsonObject
  /** Further `additionalModelRequestFields`. */
  readonly additional?: JsonObject
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
      case 'document': {
        const { mediaType, bytes } = bytesOf(block.source, 'a document')
        const format = documentFormat(mediaType, block.name)
        const name = this.#documents.next(block.name ?? 'document')
        return [{ document: { format, name, source: { bytes } } }]
      }
      case 'tool-call': {
        const toolUseId = this.#labels.callId(block.id)
        const name = this.#labels.name(block.name)
        return [{ toolUse: { toolUseId, name, input: argumentsObject(block.input) } }]
      }
      case 'tool-result': {
        const content = block.content.flatMap((part) =>
          part.type === 'image' ? [writeImage(part)] : [{ text: part.text }],
        )
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

  toolConfig(chat: Chat, points: CachePoints): JsonObject | undefined {
    const tools = chat.tools.flatMap((tool) => this.#tool(tool))
    if (tools.length === 0) {
      // A history with calls needs at least one tool, whatever it is.
      if (!hasToolBlocks(chat.turns)) return undefined
      const inputSchema = { json: { type: 'object' } }
      return { tools: [{ toolSpec: { name: 'unavailable', inputSchema } }] }
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

const statusOf = (isError: boolean): string => (isError ? 'error' : 'success')

const hasToolBlocks = (turns: readonly Turn[]): boolean =>
  turns.some(({ blocks }) =>
    blocks.some(({ type }) => type === 'tool-call' || type === 'tool-result'),
  )

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

/** Answers of vendorD's native format, whole and streamed. */
import type {
  Answer,
  AnswerEvent,
  AnswerReader,
  Choice,
  MadeImageBlock,
  ProviderError,
  StopReason,
  StreamEvent,
  TextBlock,
  ThinkingBlock,
  ToolCallBlock,
  Usage,
} from '../../chat.ts'
import {
  booleanAt,
  field,
  isObject,
  type JsonObject,
  listAt,
  numberAt,
  objectAt,
  parseJson,
  stringAt,
} from '../../json.ts'
import { LlmError } from '../../llm-error.ts'
import { idWithSignature } from '../thought-signature.ts'
import { laterCounts } from '../usage-counts.ts'

const filtered = new Set([
  'SAFETY',
  'RECITATION',
  'LANGUAGE',
  'BLOCKLIST',
  'PROHIBITED_CONTENT',
  'SPII',
  'IMAGE_SAFETY',
  'MALFORMED_FUNCTION_CALL',
  'UNEXPECTED_TOOL_CALL',
])

function stopOf(reason: string | undefined, hasCalls: boolean): StopReason {
  if (reason === 'MAX_TOKENS') return 'length'
  if (reason !== undefined && filtered.has(reason)) return 'filter'
  return hasCalls ? 'tool' : 'end'
}

/** Input includes cached tokens; thoughts are counted beside the answer and belong to the output. */
function readUsageMetadata(usage: unknown): Usage | undefined {
  const input = numberAt(usage, 'promptTokenCount')
  if (input === undefined) return undefined
  const cacheRead = numberAt(usage, 'cachedContentTokenCount')
  const thoughts = numberAt(usage, 'thoughtsTokenCount')
  return {
    input,
    uncachedInput: Math.max(0, input - (cacheRead ?? 0)),
    output: (numberAt(usage, 'candidatesTokenCount') ?? 0) + (thoughts ?? 0),
    ...(cacheRead !== undefined && { cacheRead }),
    ...(thoughts !== undefined && { reasoning: thoughts }),
  }
}

type Part = TextBlock | ThinkingBlock | ToolCallBlock | MadeImageBlock

/** Calls have no id of their own: `newId` makes one. */
function readPart(part: unknown, newId: () => string): Part[] {
  const text = stringAt(part, 'text')
  if (text !== undefined) {
    return [
      booleanAt(part, 'thought') === true ? { type: 'thinking', text } : { type: 'text', text },
    ]
  }
  const inline = objectAt(part, 'inlineData')
  // Images that the model has thought up on its way are no part of the answer.
  if (inline !== undefined && booleanAt(part, 'thought') !== true) return readMadeImage(inline)
  const call = objectAt(part, 'functionCall')
  const name = stringAt(call, 'name')
  if (name === undefined) return []
  const id = stringAt(call, 'id') ?? `call_${newId()}`
  const signature = stringAt(part, 'thoughtSignature')
  const input = field(call, 'args') ?? {}
  return [{ type: 'tool-call', id: idWithSignature(id, signature), name, input }]
}

/** @throws LlmError 502 for media that no client format has a place for. */
function readMadeImage(inline: JsonObject): Part[] {
  const mediaType = stringAt(inline, 'mimeType') ?? ''
  if (!mediaType.startsWith('image/')) {
    throw new LlmError(
      502,
      `the answer has content of type ${mediaType}, which cannot be passed on`,
    )
  }
  return [{ type: 'made-image', mediaType, data: stringAt(inline, 'data') ?? '' }]
}

/** Adjacent pieces of one kind become one block. */
function joined(parts: readonly Part[]): Part[] {
  const blocks: Part[] = []
  for (const part of parts) {
    const last = blocks.at(-1)
    if (isText(part) && isText(last) && last.type === part.type) {
      blocks[blocks.length - 1] = { ...part, text: last.text + part.text }
    } else blocks.push(part)
  }
  return blocks
}

const isText = (part: Part | undefined): part is TextBlock | ThinkingBlock =>
  part?.type === 'text' || part?.type === 'thinking'

/** @throws LlmError 502 where there is neither an answer nor the reason for its absence. */
export function readGenerateContent(body: unknown, model: string, newId: () => string): Answer {
  const [first, ...others] = listAt(body, 'candidates').map((one) => readCandidate(one, newId))
  const blocked = stringAt(objectAt(body, 'promptFeedback'), 'blockReason')
  if (first === undefined && blocked === undefined) {
    throw new LlmError(502, 'the answer has no candidates')
  }
  const usage = readUsageMetadata(field(body, 'usageMetadata'))
  return {
    id: stringAt(body, 'responseId') ?? `chatcmpl-${newId()}`,
    model: stringAt(body, 'modelVersion') ?? model,
    ...(first ?? { blocks: [], stop: 'filter' }),
    ...(others.length > 0 && { others }),
    ...(usage !== undefined && { usage }),
  }
}

function readCandidate(candidate: unknown, newId: () => string): Choice {
  const parts = listAt(objectAt(candidate, 'content'), 'parts')
  const blocks = joined(parts.flatMap((part) => readPart(part, newId)))
  const hasCalls = blocks.some(({ type }) => type === 'tool-call')
  return { blocks, stop: stopOf(stringAt(candidate, 'finishReason'), hasCalls) }
}

/** Each event is a piece of an answer; nothing marks the last one but its finish reason. */
export class GenerateContentReader implements AnswerReader {
  readonly #model: string
  readonly #newId: () => string
  #isStarted = false
  #hasCalls = false
  #hasStopped = false
  /** The counts of all events so far. */
  #usage: JsonObject = {}
  /** Text is block 0, thoughts block 1, calls and images follow. */
  #nextBlock = 2

  constructor(model: string, newId: () => string) {
    this.#model = model
    this.#newId = newId
  }

  read({ data }: StreamEvent): readonly AnswerEvent[] {
    const chunk = parseJson(data)
    if (chunk === undefined) throw new LlmError(502, 'an event of the answer is not JSON')
    if (field(chunk, 'error') != null) {
      return [{ type: 'error', error: readGoogleError(502, data) }]
    }
    const events: AnswerEvent[] = []
    if (!this.#isStarted) {
      this.#isStarted = true
      const id = stringAt(chunk, 'responseId') ?? `chatcmpl-${this.#newId()}`
      events.push({ type: 'start', id, model: stringAt(chunk, 'modelVersion') ?? this.#model })
    }
    const candidate = listAt(chunk, 'candidates').find((one) => (numberAt(one, 'index') ?? 0) === 0)
    for (const part of listAt(objectAt(candidate, 'content'), 'parts')) {
      for (const block of readPart(part, this.#newId)) this.#emit(block, events)
    }
    this.#stop(chunk, candidate, events)
    this.#count(objectAt(chunk, 'usageMetadata'), events)
    return events
  }

  finish(): readonly AnswerEvent[] {
    return this.#hasStopped ? [{ type: 'end' }] : []
  }

  #count(counts: JsonObject | undefined, events: AnswerEvent[]): void {
    if (counts === undefined) return
    this.#usage = laterCounts(this.#usage, counts)
    const usage = readUsageMetadata(this.#usage)
    if (usage !== undefined) events.push({ type: 'usage', usage })
  }

  #emit(block: Part, events: AnswerEvent[]): void {
    if (block.type === 'text') events.push({ type: 'text', index: 0, text: block.text })
    else if (block.type === 'thinking') {
      events.push({ type: 'thinking', index: 1, text: block.text })
    } else if (block.type === 'made-image') {
      events.push({ ...block, index: this.#nextBlock++ })
    } else {
      this.#hasCalls = true
      const index = this.#nextBlock++
      const json = JSON.stringify(block.input)
      events.push(
        { type: 'tool-start', index, id: block.id, name: block.name },
        { type: 'tool-input', index, json },
        { type: 'block-stop', index },
      )
    }
  }

  #stop(chunk: unknown, candidate: unknown, events: AnswerEvent[]): void {
    const reason = stringAt(candidate, 'finishReason')
    const blocked = stringAt(objectAt(chunk, 'promptFeedback'), 'blockReason')
    if (this.#hasStopped || (reason === undefined && blocked === undefined)) return
    this.#hasStopped = true
    const stop = reason === undefined ? 'filter' : stopOf(reason, this.#hasCalls)
    events.push({ type: 'stop', reason: stop })
  }
}

const kinds: Readonly<Record<string, string>> = {
  INVALID_ARGUMENT: 'invalid_request_error',
  FAILED_PRECONDITION: 'invalid_request_error',
  NOT_FOUND: 'not_found_error',
  PERMISSION_DENIED: 'authentication_error',
  UNAUTHENTICATED: 'authentication_error',
  RESOURCE_EXHAUSTED: 'rate_limit_error',
}

/** `{error: {code, message, status}}`, or a list with one such object. */
export function readGoogleError(status: number, text: string): ProviderError {
  const body = parseJson(text)
  const told = objectAt(Array.isArray(body) ? body[0] : body, 'error')
  if (!isObject(told)) return { status, message: stringAt(body, 'error') ?? text }
  const code = stringAt(told, 'status')
  return {
    status,
    message: stringAt(told, 'message') ?? text,
    kind: kinds[code ?? ''] ?? 'api_error',
    ...(code !== undefined && { code }),
  }
}

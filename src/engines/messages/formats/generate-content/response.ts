/** Reads responses in vendor D's native format, whole and streamed. */
import { appendAll } from '../../../../ground/base/append-all.ts'
import type {
  Choice,
  MadeImageBlock,
  ModelResponse,
  ProviderError,
  ResponseEvent,
  ResponseEventReader,
  StreamEvent,
  TextBlock,
  ThinkingBlock,
  ToolCallBlock,
} from '../../chat.ts'
import { type Ending, endedWithout, eventOfEnding, stopOfEnding } from '../../common/ending.ts'
import { idWithSignature } from '../../common/thought-signature.ts'
import { LatestCounts } from '../../common/usage.ts'
import { Utf8Places } from '../../common/utf8-places.ts'
import {
  booleanAt,
  field,
  type JsonObject,
  listAt,
  needEvent,
  numberAt,
  objectAt,
  parseJson,
  stringAt,
} from '../../json/json.ts'
import { LlmError } from '../../llm-error.ts'
import { groundingOf } from './grounding.ts'
import { readGenerateContentUsage } from './usage.ts'

const filterReasons = new Set([
  'SAFETY',
  'RECITATION',
  'LANGUAGE',
  'BLOCKLIST',
  'PROHIBITED_CONTENT',
  'SPII',
  'IMAGE_SAFETY',
  'IMAGE_PROHIBITED_CONTENT',
  'IMAGE_RECITATION',
])

/** Reasons with which a response is not complete, whatever came before. */
const failures = new Set([
  'OTHER',
  'NO_IMAGE',
  'IMAGE_OTHER',
  'MALFORMED_FUNCTION_CALL',
  'MALFORMED_RESPONSE',
  'MISSING_THOUGHT_SIGNATURE',
  'TOO_MANY_TOOL_CALLS',
  'UNEXPECTED_TOOL_CALL',
])
const successes = new Set([undefined, 'STOP', 'FINISH_REASON_UNSPECIFIED', 'CONTINUATION'])

/** What a candidate has, as far as the reason of its end depends on it. */
interface Had {
  readonly content: boolean
  readonly calls: boolean
}

function endingOf(reason: string | undefined, had: Had): Ending {
  if (reason === 'MAX_TOKENS') return 'length'
  if (reason !== undefined && filterReasons.has(reason)) return 'filter'
  const isFailure = failures.has(reason ?? '') || (!successes.has(reason) && !had.content)
  if (reason !== undefined && isFailure) return endedWithout(reason)
  return had.calls ? 'tool' : 'end'
}

type Part = TextBlock | ThinkingBlock | ToolCallBlock | MadeImageBlock

/** Reads a part of the content. `newId` makes an id for calls without one. */
function readPart(part: unknown, newId: () => string): Part[] {
  const text = stringAt(part, 'text')
  const isThought = booleanAt(part, 'thought') === true
  if (text !== undefined) return [{ type: isThought ? 'thinking' : 'text', text }]
  const inline = objectAt(part, 'inlineData')
  // Images that belong to the model's thoughts are not part of the response.
  if (inline !== undefined && !isThought) return readMadeImage(inline)
  const call = objectAt(part, 'functionCall')
  const name = stringAt(call, 'name')
  if (name === undefined) return []
  const id = stringAt(call, 'id') ?? `call_${newId()}`
  const signature = stringAt(part, 'thoughtSignature')
  const input = field(call, 'args') ?? {}
  return [{ type: 'tool-call', id: idWithSignature(id, signature), name, input }]
}

/** @throws LlmError 502 for media that no client format supports. */
function readMadeImage(inline: JsonObject): Part[] {
  const mediaType = stringAt(inline, 'mimeType') ?? ''
  if (!mediaType.startsWith('image/')) {
    throw new LlmError(502, 'the response has media other than images, which cannot be passed on')
  }
  return [{ type: 'made-image', mediaType, data: stringAt(inline, 'data') ?? '' }]
}

/** Joins adjacent text parts and adjacent thinking parts to one block each. */
function joinTexts(parts: readonly Part[]): Part[] {
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

/** @throws LlmError 502 if the body has neither candidates nor a block reason. */
export function readGenerateContent(
  body: unknown,
  model: string,
  newId: () => string,
): ModelResponse {
  const [first, ...others] = listAt(body, 'candidates').map((one) => readCandidate(one, newId))
  const blocked = stringAt(objectAt(body, 'promptFeedback'), 'blockReason')
  if (first === undefined && blocked === undefined) {
    throw new LlmError(502, 'the response has no candidates')
  }
  return {
    id: stringAt(body, 'responseId') ?? `chatcmpl-${newId()}`,
    model: stringAt(body, 'modelVersion') ?? model,
    ...(first ?? { blocks: [], stop: 'filter' }),
    ...(others.length > 0 && { others }),
    usage: readGenerateContentUsage(field(body, 'usageMetadata')),
  }
}

function readCandidate(candidate: unknown, newId: () => string): Choice {
  const parts = listAt(objectAt(candidate, 'content'), 'parts')
  const blocks = joinTexts(parts.flatMap((part) => readPart(part, newId)))
  const calls = blocks.some(({ type }) => type === 'tool-call')
  const had = { calls, content: blocks.length > 0 }
  return {
    blocks: withSources(blocks, candidate),
    stop: stopOfEnding(endingOf(stringAt(candidate, 'finishReason'), had)),
  }
}

/** Adds the sources to the first text, which usually is the only one. */
function withSources(blocks: Part[], candidate: unknown): Part[] {
  const first = blocks.find((block) => block.type === 'text')
  const text = new Utf8Places()
  text.add(first?.text ?? '')
  const citations = first === undefined ? [] : groundingOf(candidate, text)
  if (citations.length === 0) return blocks
  return blocks.map((block) => (block === first ? { ...first, citations } : block))
}

/** Reads a streamed response. The stream has no end event; a finish reason shows that it is complete. */
export class GenerateContentReader implements ResponseEventReader {
  readonly #model: string
  readonly #newId: () => string
  #isStarted = false
  #hasCalls = false
  #hasContent = false
  /** The text so far, in which sources have their places. */
  readonly #text = new Utf8Places()
  /** The last reason of the end: some providers write one in each event. */
  #reason: string | undefined
  #isBlocked = false
  /** Usage counts of all events so far. */
  readonly #usage = new LatestCounts()
  /** Index of the next block. Text has index 0 and thinking 1; calls and images follow. */
  #nextBlock = 2

  constructor(model: string, newId: () => string) {
    this.#model = model
    this.#newId = newId
  }

  read({ data }: StreamEvent): readonly ResponseEvent[] {
    const chunk = needEvent(data)
    if (field(chunk, 'error') != null) {
      return [{ type: 'error', error: readGoogleError(502, data) }]
    }
    const events: ResponseEvent[] = []
    if (!this.#isStarted) {
      this.#isStarted = true
      const id = stringAt(chunk, 'responseId') ?? `chatcmpl-${this.#newId()}`
      events.push({ type: 'start', id, model: stringAt(chunk, 'modelVersion') ?? this.#model })
    }
    const candidate = listAt(chunk, 'candidates').find((one) => (numberAt(one, 'index') ?? 0) === 0)
    for (const part of listAt(objectAt(candidate, 'content'), 'parts')) {
      for (const block of readPart(part, this.#newId)) {
        this.#hasContent = true
        appendAll(events, this.#eventsOf(block))
      }
    }
    for (const citation of groundingOf(candidate, this.#text)) {
      events.push({ type: 'citation', index: 0, citation })
    }
    this.#count(objectAt(chunk, 'usageMetadata'), events)
    this.#reason = stringAt(candidate, 'finishReason') || this.#reason
    this.#isBlocked ||= stringAt(objectAt(chunk, 'promptFeedback'), 'blockReason') !== undefined
    return events
  }

  finish(): readonly ResponseEvent[] {
    if (this.#reason === undefined && !this.#isBlocked) return []
    const had = { calls: this.#hasCalls, content: this.#hasContent }
    const ending = this.#reason === undefined ? 'filter' : endingOf(this.#reason, had)
    return [eventOfEnding(ending), { type: 'end' }]
  }

  #count(counts: JsonObject | undefined, events: ResponseEvent[]): void {
    if (counts === undefined) return
    const usage = readGenerateContentUsage(this.#usage.add(counts))
    if (usage !== undefined) events.push({ type: 'usage', usage })
  }

  #eventsOf(block: Part): ResponseEvent[] {
    if (block.type === 'text') {
      this.#text.add(block.text)
      return [{ ...block, index: 0 }]
    }
    if (block.type === 'thinking') return [{ ...block, index: 1 }]
    const index = this.#nextBlock++
    if (block.type === 'made-image') return [{ ...block, index }]
    this.#hasCalls = true
    return [
      { type: 'tool-start', index, id: block.id, name: block.name },
      { type: 'tool-input', index, json: JSON.stringify(block.input) },
      { type: 'block-stop', index },
    ]
  }
}

const errorTypeByCode = new Map<string, string>([
  ['INVALID_ARGUMENT', 'invalid_request_error'],
  ['FAILED_PRECONDITION', 'invalid_request_error'],
  ['NOT_FOUND', 'not_found_error'],
  ['PERMISSION_DENIED', 'authentication_error'],
  ['UNAUTHENTICATED', 'authentication_error'],
  ['RESOURCE_EXHAUSTED', 'rate_limit_error'],
])

/** Reads `{error: {code, message, status}}`, or a list with one such object. */
export function readGoogleError(status: number, text: string): ProviderError {
  const body = parseJson(text)
  const error = objectAt(Array.isArray(body) ? body[0] : body, 'error')
  if (error === undefined) return { status, message: stringAt(body, 'error') ?? text }
  const code = stringAt(error, 'status')
  const kind = errorTypeByCode.get(code ?? '') ?? 'api_error'
  return { status, message: stringAt(error, 'message') ?? text, kind, code }
}

/** Reads the events of streamed responses of Converse, which event-stream.ts has decoded. */
import type {
  ModelResponse,
  ProviderError,
  ResponseEvent,
  ResponseEventReader,
  StreamEvent,
} from '../../chat.ts'
import { eventOfEnding } from '../../common/ending.ts'
import { field, needEvent, numberAt, objectAt, parseJson, stringAt } from '../../json/json.ts'
import { readCitation, readConverseStop } from './response.ts'
import { readUsageOfConverse } from './usage.ts'

/** Prefix of the event name for frames whose message type is not `event`. */
export const exceptionPrefix = 'exception:'

export class ConverseReader implements ResponseEventReader {
  readonly #head: Pick<ModelResponse, 'id' | 'model'>
  #isEnded = false

  constructor(head: Pick<ModelResponse, 'id' | 'model'>) {
    this.#head = head
  }

  read({ event = '', data }: StreamEvent): readonly ResponseEvent[] {
    const error = readException({ event, data })
    if (error !== undefined) return [{ type: 'error', error }]
    const body = needEvent(data)
    const index = numberAt(body, 'contentBlockIndex') ?? 0
    switch (event) {
      case 'messageStart':
        return [{ type: 'start', ...this.#head }]
      case 'contentBlockStart':
        return startBlock(index, objectAt(objectAt(body, 'start'), 'toolUse'))
      case 'contentBlockDelta':
        return deltaOf(index, objectAt(body, 'delta'))
      case 'contentBlockStop':
        return [{ type: 'block-stop', index }]
      case 'messageStop':
        return [eventOfEnding(readConverseStop(stringAt(body, 'stopReason')))]
      case 'metadata':
        return this.#metadata(body)
      default:
        return []
    }
  }

  finish(): readonly ResponseEvent[] {
    return []
  }

  /** Reads the last event of a stream. */
  #metadata(body: unknown): readonly ResponseEvent[] {
    const usage = readUsageOfConverse(body)
    const events: ResponseEvent[] = usage === undefined ? [] : [{ type: 'usage', usage }]
    if (this.#isEnded) return events
    this.#isEnded = true
    return [...events, { type: 'end' }]
  }
}

function startBlock(index: number, call: unknown): readonly ResponseEvent[] {
  if (call === undefined) return []
  const name = stringAt(call, 'name') ?? ''
  return [{ type: 'tool-start', index, id: stringAt(call, 'toolUseId') ?? '', name }]
}

function deltaOf(index: number, delta: unknown): readonly ResponseEvent[] {
  const text = stringAt(delta, 'text')
  if (text !== undefined) return [{ type: 'text', index, text }]
  const json = stringAt(objectAt(delta, 'toolUse'), 'input')
  if (json !== undefined) return [{ type: 'tool-input', index, json }]
  const citation = readCitation(objectAt(delta, 'citation'))
  if (citation !== undefined) return [{ type: 'citation', index, citation }]
  const thought = objectAt(delta, 'reasoningContent')
  if (thought === undefined) return []
  const thinking = stringAt(thought, 'text')
  if (thinking !== undefined) return [{ type: 'thinking', index, text: thinking }]
  const signature = stringAt(thought, 'signature')
  if (signature !== undefined) return [{ type: 'thinking', index, text: '', signature }]
  const data = stringAt(thought, 'redactedContent')
  return data === undefined ? [] : [{ type: 'redacted-thinking', index, data }]
}

const statusByException = new Map<string, number>([
  ['throttlingException', 429],
  ['serviceQuotaExceededException', 429],
  ['validationException', 400],
  ['modelTimeoutException', 504],
  ['serviceUnavailableException', 503],
])

/** Returns the error of a frame that is no event; undefined for events. */
export function readException({ event = '', data }: StreamEvent): ProviderError | undefined {
  if (!event.startsWith(exceptionPrefix)) return undefined
  const code = event.slice(exceptionPrefix.length)
  const body = parseJson(data)
  const message = stringAt(body, 'message') ?? stringAt(body, 'Message') ?? code
  return { status: statusByException.get(code) ?? 502, code, message }
}

/** Types of events by a member that only they have. */
const typesByMember = [
  ['role', 'messageStart'],
  ['start', 'contentBlockStart'],
  ['delta', 'contentBlockDelta'],
  ['stopReason', 'messageStop'],
  ['usage', 'metadata'],
  ['contentBlockIndex', 'contentBlockStop'],
] as const

/** Returns an event with its type, which guards remove, because they do not know it. */
export function conversedEvent({ event, data }: StreamEvent): StreamEvent {
  if (event !== undefined && event !== '') return { event, data }
  const body = parseJson(data)
  const type = typesByMember.find(([name]) => field(body, name) !== undefined)?.[1]
  return { event: type ?? `${exceptionPrefix}modelStreamErrorException`, data }
}

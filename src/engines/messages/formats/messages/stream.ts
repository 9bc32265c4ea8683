/** Streamed responses in the messages format, read from a provider and written for a client. */
import {
  laterUsage,
  type ProviderError,
  type ResponseEvent,
  type ResponseEventReader,
  type ResponseEventWriter,
  type StreamEvent,
  type Usage,
} from '../../chat.ts'
import { LatestCounts } from '../../common/usage.ts'
import { field, type JsonObject, needEvent, numberAt, objectAt, stringAt } from '../../json/json.ts'
import { readCitation, writeCitation } from './citations.ts'
import {
  explanationOf,
  imageResponse,
  readMessagesError,
  readStopReason,
  writeMessagesError,
  writeStopReason,
} from './response.ts'
import { readMessagesUsage, writeMessagesUsage } from './usage.ts'

export class MessagesReader implements ResponseEventReader {
  /** The latest usage counts of the provider. */
  readonly #usage = new LatestCounts()
  #hasStopped = false
  #isEnded = false
  /** Index of the open block of a tool that the provider runs; it is not sent to clients. */
  #skipped: number | undefined

  /** Inputs that came whole with the start of a call, by the index of the block, until pieces replace them. */
  readonly #inputs = new Map<number, string>()

  read({ data }: StreamEvent): readonly ResponseEvent[] {
    const event = needEvent(data)
    const index = numberAt(event, 'index') ?? 0
    switch (stringAt(event, 'type')) {
      case 'message_start':
        return this.#start(objectAt(event, 'message'))
      case 'content_block_start':
        return this.#startBlock(index, objectAt(event, 'content_block'))
      case 'content_block_delta':
        return index === this.#skipped ? [] : this.#continueBlock(index, objectAt(event, 'delta'))
      case 'content_block_stop':
        return index === this.#skipped ? [] : this.#stopBlock(index)
      case 'message_delta':
        return this.#delta(event)
      case 'message_stop':
        if (this.#isEnded) return []
        this.#isEnded = true
        return [{ type: 'end' }]
      case 'error':
        return [{ type: 'error', error: readMessagesError(502, data) }]
      default:
        // A proxy in front of the provider may use another error format.
        if (field(event, 'error') == null) return []
        return [{ type: 'error', error: readMessagesError(502, data) }]
    }
  }

  finish(): readonly ResponseEvent[] {
    return []
  }

  #start(message: unknown): readonly ResponseEvent[] {
    const usage = this.#usage.add(objectAt(message, 'usage'))
    const id = stringAt(message, 'id') ?? ''
    const model = stringAt(message, 'model') ?? ''
    return [{ type: 'start', id, model, usage: readMessagesUsage(usage) }]
  }

  #startBlock(index: number, block: unknown): readonly ResponseEvent[] {
    this.#skipped = isServerTool(block) ? index : undefined
    const input = stringAt(block, 'type') === 'tool_use' ? objectAt(block, 'input') : undefined
    if (input !== undefined && Object.keys(input).length > 0) {
      this.#inputs.set(index, JSON.stringify(input))
    }
    return startOfBlock(index, block)
  }

  #continueBlock(index: number, delta: unknown): readonly ResponseEvent[] {
    const events = deltaOfBlock(index, delta)
    if (stringAt(delta, 'partial_json')) this.#inputs.delete(index)
    return events
  }

  /** Some servers send the whole input with the start of a call, and no pieces. */
  #stopBlock(index: number): readonly ResponseEvent[] {
    const json = this.#inputs.get(index)
    this.#inputs.delete(index)
    const stop = { type: 'block-stop', index } as const
    return json === undefined ? [stop] : [{ type: 'tool-input', index, json }, stop]
  }

  #delta(event: unknown): readonly ResponseEvent[] {
    const delta = objectAt(event, 'delta')
    const reason = stringAt(delta, 'stop_reason')
    const stopSequence = stringAt(delta, 'stop_sequence')
    const events: ResponseEvent[] = []
    if (reason && !this.#hasStopped) {
      this.#hasStopped = true
      const explanation = explanationOf(delta) ?? explanationOf(event)
      if (explanation !== undefined) events.push({ type: 'refusal', text: explanation })
      events.push({ type: 'stop', reason: readStopReason(reason), stopSequence })
    }
    const usage = readMessagesUsage(this.#usage.add(objectAt(event, 'usage')))
    if (usage !== undefined) events.push({ type: 'usage', usage })
    return events
  }
}

function isServerTool(block: unknown): boolean {
  const type = stringAt(block, 'type')
  return type === 'server_tool_use' || type?.endsWith('_tool_result') === true
}

function startOfBlock(index: number, block: unknown): readonly ResponseEvent[] {
  const name = stringAt(block, 'name')
  switch (stringAt(block, 'type')) {
    case 'tool_use':
      if (name === undefined) return []
      return [{ type: 'tool-start', index, id: stringAt(block, 'id') ?? '', name }]
    case 'text': {
      const text = stringAt(block, 'text')
      return text ? [{ type: 'text', index, text }] : []
    }
    case 'thinking': {
      const text = stringAt(block, 'thinking') ?? ''
      const signature = stringAt(block, 'signature') || undefined
      return text || signature ? [{ type: 'thinking', index, text, signature }] : []
    }
    case 'redacted_thinking': {
      const data = stringAt(block, 'data')
      return data === undefined ? [] : [{ type: 'redacted-thinking', index, data }]
    }
    default:
      return []
  }
}

function deltaOfBlock(index: number, delta: unknown): readonly ResponseEvent[] {
  switch (stringAt(delta, 'type')) {
    case 'text_delta':
      return [{ type: 'text', index, text: stringAt(delta, 'text') ?? '' }]
    case 'thinking_delta':
      return [{ type: 'thinking', index, text: stringAt(delta, 'thinking') ?? '' }]
    case 'signature_delta':
      return [{ type: 'thinking', index, text: '', signature: stringAt(delta, 'signature') ?? '' }]
    case 'citations_delta': {
      const citation = readCitation(objectAt(delta, 'citation'))
      return citation === undefined ? [] : [{ type: 'citation', index, citation }]
    }
    case 'input_json_delta':
      return [{ type: 'tool-input', index, json: stringAt(delta, 'partial_json') ?? '' }]
    default:
      return []
  }
}

/** Index of the block with a refusal, which no other block has. */
const refusalIndex = -1

/** A block that has started for the client and has not ended. */
interface OpenBlock {
  /** Index of the block for the client, counted without gaps. */
  readonly index: number
  readonly type: unknown
}

/**
 * Writes a message, and opens and closes blocks around their pieces. The stop reason and the usage are
 * written at the end, because some providers report the final usage only after the stop reason.
 */
export class MessagesWriter implements ResponseEventWriter {
  /** Open blocks, by their index in the common form. */
  readonly #open = new Map<number, OpenBlock>()
  /** Whether the open blocks are calls of tools. */
  #areCalls = false
  #next = 0
  #isStarted = false
  #stop: JsonObject = { stop_reason: 'end_turn', stop_sequence: null }
  #usage: Usage | undefined
  /** True if the client does not have the current usage yet. */
  #isUsageNew = false
  #isFinished = false

  write(event: ResponseEvent): readonly StreamEvent[] {
    switch (event.type) {
      case 'start':
        return this.#start(event.id, event.model, event.usage)
      case 'text':
        return [
          ...this.#openBlock(event.index, { type: 'text', text: '' }),
          this.#delta(event.index, { type: 'text_delta', text: event.text }),
        ]
      case 'citation':
        return [
          ...this.#openBlock(event.index, { type: 'text', text: '' }),
          this.#delta(event.index, {
            type: 'citations_delta',
            citation: writeCitation(event.citation),
          }),
        ]
      case 'refusal':
        return this.write({ type: 'text', index: refusalIndex, text: event.text })
      case 'thinking':
        return this.#writeThinking(event.index, event.text, event.signature)
      case 'redacted-thinking':
        return this.#openBlock(event.index, { type: 'redacted_thinking', data: event.data })
      case 'made-image':
        throw imageResponse()
      case 'tool-start': {
        const { index, id, name } = event
        return this.#openBlock(index, { type: 'tool_use', id, name, input: {} })
      }
      case 'tool-input':
        if (!this.#open.has(event.index)) return []
        return [this.#delta(event.index, { type: 'input_json_delta', partial_json: event.json })]
      case 'block-stop':
        return this.#close(event.index)
      case 'stop': {
        const stop_reason = writeStopReason(event.reason, event.stopSequence)
        this.#stop = { stop_reason, stop_sequence: event.stopSequence ?? null }
        return []
      }
      case 'usage':
        this.#usage = laterUsage(this.#usage, event.usage)
        this.#isUsageNew = true
        return []
      case 'error':
        return this.#fail(event.error)
      case 'end':
        return []
    }
  }

  finish(isClean: boolean): readonly StreamEvent[] {
    return isClean && this.#isStarted && !this.#isFinished ? this.#end() : []
  }

  #start(id: string, model: string, usage: Usage | undefined): StreamEvent[] {
    this.#isStarted = true
    this.#usage = usage
    const message = {
      id,
      type: 'message',
      role: 'assistant',
      model,
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: writeMessagesUsage(usage),
    }
    return [eventOf('message_start', { message })]
  }

  #writeThinking(index: number, text: string, signature: string | undefined): StreamEvent[] {
    const events = this.#openBlock(index, { type: 'thinking', thinking: '', signature: '' })
    if (text !== '') events.push(this.#delta(index, { type: 'thinking_delta', thinking: text }))
    if (signature !== undefined) {
      events.push(this.#delta(index, { type: 'signature_delta', signature }))
    }
    return events
  }

  /** Opens a block unless it is already open, and closes the others: only tool calls may be open together. */
  #openBlock(index: number, block: JsonObject): StreamEvent[] {
    const { type } = block
    if (this.#open.get(index)?.type === type) return []
    const isCall = type === 'tool_use'
    const events = isCall && this.#areCalls ? [] : this.#closeAll()
    this.#areCalls = isCall
    const written = this.#next++
    this.#open.set(index, { index: written, type })
    events.push(eventOf('content_block_start', { index: written, content_block: block }))
    return events
  }

  #delta(index: number, delta: JsonObject): StreamEvent {
    return eventOf('content_block_delta', { index: this.#open.get(index)?.index ?? 0, delta })
  }

  #close(index: number): StreamEvent[] {
    const open = this.#open.get(index)
    if (open === undefined) return []
    this.#open.delete(index)
    return [eventOf('content_block_stop', { index: open.index })]
  }

  #closeAll(): StreamEvent[] {
    return [...this.#open.keys()].flatMap((index) => this.#close(index))
  }

  /** Writes an error, after the usage: a response that was cut off has used tokens too. */
  #fail(error: ProviderError): StreamEvent[] {
    const isKnown = this.#isStarted && !this.#isFinished && this.#isUsageNew
    this.#isFinished = true
    const noStop = { stop_reason: null, stop_sequence: null }
    const usage = isKnown ? [this.#messageDelta(noStop)] : []
    return [...usage, eventOf('error', writeMessagesError(error))]
  }

  #end(): StreamEvent[] {
    this.#isFinished = true
    return [...this.#closeAll(), this.#messageDelta(this.#stop), eventOf('message_stop', {})]
  }

  #messageDelta(delta: JsonObject): StreamEvent {
    return eventOf('message_delta', { delta, usage: writeMessagesUsage(this.#usage) })
  }
}

const eventOf = (type: string, fields: JsonObject): StreamEvent => ({
  event: type,
  data: JSON.stringify({ type, ...fields }),
})

/** Streamed answers in the messages format, read from a provider and written for a client. */
import {
  type AnswerEvent,
  type AnswerReader,
  type AnswerWriter,
  laterUsage,
  type ProviderError,
  type StreamEvent,
  type Usage,
} from '../../chat.ts'
import { field, type JsonObject, numberAt, objectAt, parseJson, stringAt } from '../../json.ts'
import { LlmError } from '../../llm-error.ts'
import { laterCounts } from '../usage-counts.ts'
import {
  imageAnswer,
  readMessagesError,
  readStopReason,
  writeMessagesError,
  writeStopReason,
} from './response.ts'
import { readMessagesUsage, writeMessagesUsage } from './usage.ts'

export class MessagesReader implements AnswerReader {
  /** The counts of the first event, overridden by those of later ones. */
  #usage: JsonObject = {}
  #hasStopped = false
  #isEnded = false
  /** Index of a block of the provider's own tools, which are no concern of clients. */
  #unread: number | undefined

  read({ data }: StreamEvent): readonly AnswerEvent[] {
    const event = parseJson(data)
    if (event === undefined) throw new LlmError(502, 'an event of the answer is not JSON')
    const index = numberAt(event, 'index') ?? 0
    switch (stringAt(event, 'type')) {
      case 'message_start':
        return this.#start(objectAt(event, 'message'))
      case 'content_block_start':
        return this.#startBlock(index, objectAt(event, 'content_block'))
      case 'content_block_delta':
        return index === this.#unread ? [] : deltaOfBlock(index, objectAt(event, 'delta'))
      case 'content_block_stop':
        return index === this.#unread ? [] : [{ type: 'block-stop', index }]
      case 'message_delta':
        return this.#delta(event)
      case 'message_stop':
        return this.#end()
      case 'error':
        return [{ type: 'error', error: readMessagesError(502, data) }]
      default: {
        // What stands before a provider may answer in words of its own.
        const isError = field(event, 'error') != null
        return isError ? [{ type: 'error', error: readMessagesError(502, data) }] : []
      }
    }
  }

  finish(): readonly AnswerEvent[] {
    return []
  }

  #startBlock(index: number, block: JsonObject | undefined): readonly AnswerEvent[] {
    this.#unread = isServerTool(block) ? index : undefined
    return startOfBlock(index, block)
  }

  #end(): readonly AnswerEvent[] {
    if (this.#isEnded) return []
    this.#isEnded = true
    return [{ type: 'end' }]
  }

  #start(message: unknown): readonly AnswerEvent[] {
    this.#usage = objectAt(message, 'usage') ?? {}
    const usage = readMessagesUsage(this.#usage)
    const id = stringAt(message, 'id') ?? ''
    const model = stringAt(message, 'model') ?? ''
    return [{ type: 'start', id, model, ...(usage !== undefined && { usage }) }]
  }

  #delta(event: unknown): readonly AnswerEvent[] {
    const delta = objectAt(event, 'delta')
    const told = stringAt(delta, 'stop_reason')
    const stopSequence = stringAt(delta, 'stop_sequence')
    const events: AnswerEvent[] = []
    if (told !== undefined && !this.#hasStopped) {
      this.#hasStopped = true
      const reason = readStopReason(told)
      events.push({ type: 'stop', reason, ...(stopSequence !== undefined && { stopSequence }) })
    }
    this.#usage = laterCounts(this.#usage, objectAt(event, 'usage'))
    const usage = readMessagesUsage(this.#usage)
    if (usage !== undefined) events.push({ type: 'usage', usage })
    return events
  }
}

function isServerTool(block: unknown): boolean {
  const type = stringAt(block, 'type')
  return type === 'server_tool_use' || type?.endsWith('_tool_result') === true
}

function startOfBlock(index: number, block: unknown): readonly AnswerEvent[] {
  const name = stringAt(block, 'name')
  switch (stringAt(block, 'type')) {
    case 'tool_use':
      if (name === undefined) return []
      return [{ type: 'tool-start', index, id: stringAt(block, 'id') ?? '', name }]
    case 'text': {
      const text = stringAt(block, 'text')
      return text ? [{ type: 'text', index, text }] : []
    }
    case 'redacted_thinking': {
      const data = stringAt(block, 'data')
      return data === undefined ? [] : [{ type: 'redacted-thinking', index, data }]
    }
    default:
      return []
  }
}

function deltaOfBlock(index: number, delta: unknown): readonly AnswerEvent[] {
  switch (stringAt(delta, 'type')) {
    case 'text_delta':
      return [{ type: 'text', index, text: stringAt(delta, 'text') ?? '' }]
    case 'thinking_delta':
      return [{ type: 'thinking', index, text: stringAt(delta, 'thinking') ?? '' }]
    case 'signature_delta':
      return [{ type: 'thinking', index, text: '', signature: stringAt(delta, 'signature') ?? '' }]
    case 'input_json_delta':
      return [{ type: 'tool-input', index, json: stringAt(delta, 'partial_json') ?? '' }]
    default:
      return []
  }
}

type BlockKind = 'text' | 'thinking' | 'redacted' | 'tool'

/** A block that the client has seen the start of, and not yet the end. */
interface OpenBlock {
  /** Dense index, as the client counts. */
  readonly index: number
  readonly kind: BlockKind
}

/**
 * Starts a message, and opens and closes blocks around their pieces. The stop reason and the usage are
 * written when the provider has finished: providers that count as they go report the last usage
 * together with the stop reason, or after it.
 */
export class MessagesWriter implements AnswerWriter {
  /** By the index of the common form. */
  readonly #open = new Map<number, OpenBlock>()
  #next = 0
  #isStarted = false
  #stop: { readonly reason: string; readonly sequence: string | null } | undefined
  #usage: Usage | undefined
  /** The client has not seen this usage. */
  #isUsageNew = false
  #isFinished = false

  write(event: AnswerEvent): readonly StreamEvent[] {
    switch (event.type) {
      case 'start':
        return this.#start(event.id, event.model, event.usage)
      case 'text':
        return [
          ...this.#ensure(event.index, 'text', { type: 'text', text: '' }),
          this.#delta(event.index, { type: 'text_delta', text: event.text }),
        ]
      case 'thinking':
        return this.#think(event.index, event.text, event.signature)
      case 'redacted-thinking':
        return this.#ensure(event.index, 'redacted', {
          type: 'redacted_thinking',
          data: event.data,
        })
      case 'made-image':
        throw imageAnswer()
      case 'tool-start':
        return this.#ensure(event.index, 'tool', {
          type: 'tool_use',
          id: event.id,
          name: event.name,
          input: {},
        })
      case 'tool-input':
        if (!this.#open.has(event.index)) return []
        return [this.#delta(event.index, { type: 'input_json_delta', partial_json: event.json })]
      case 'block-stop':
        return this.#close(event.index)
      case 'stop': {
        const { reason, stopSequence } = event
        this.#stop = {
          reason: writeStopReason(reason, stopSequence),
          sequence: stopSequence ?? null,
        }
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
    return [named('message_start', { type: 'message_start', message })]
  }

  #think(index: number, text: string, signature: string | undefined): StreamEvent[] {
    const events = this.#ensure(index, 'thinking', {
      type: 'thinking',
      thinking: '',
      signature: '',
    })
    if (text !== '') events.push(this.#delta(index, { type: 'thinking_delta', thinking: text }))
    if (signature !== undefined) {
      events.push(this.#delta(index, { type: 'signature_delta', signature }))
    }
    return events
  }

  /** Opens a block where it is not open; tools may stay open beside each other, nothing else may. */
  #ensure(index: number, kind: BlockKind, content: JsonObject): StreamEvent[] {
    if (this.#open.get(index)?.kind === kind) return []
    const others = [...this.#open].filter(([, open]) => kind !== 'tool' || open.kind !== 'tool')
    const events = others.flatMap(([other]) => this.#close(other))
    const block = { index: this.#next++, kind }
    this.#open.set(index, block)
    const start = { type: 'content_block_start', index: block.index, content_block: content }
    events.push(named('content_block_start', start))
    return events
  }

  #delta(index: number, delta: JsonObject): StreamEvent {
    const at = this.#open.get(index)?.index ?? 0
    return named('content_block_delta', { type: 'content_block_delta', index: at, delta })
  }

  #close(index: number): StreamEvent[] {
    const open = this.#open.get(index)
    if (open === undefined) return []
    this.#open.delete(index)
    return [named('content_block_stop', { type: 'content_block_stop', index: open.index })]
  }

  /** An answer that breaks off has used tokens too. */
  #fail(error: ProviderError): StreamEvent[] {
    const isKnown = this.#isStarted && !this.#isFinished && this.#isUsageNew
    this.#isFinished = true
    const usage = isKnown ? [this.#messageDelta(null, null)] : []
    return [...usage, named('error', writeMessagesError(error))]
  }

  #end(): StreamEvent[] {
    this.#isFinished = true
    const { reason, sequence } = this.#stop ?? { reason: 'end_turn', sequence: null }
    return [
      ...[...this.#open.keys()].flatMap((index) => this.#close(index)),
      this.#messageDelta(reason, sequence),
      named('message_stop', { type: 'message_stop' }),
    ]
  }

  #messageDelta(reason: string | null, sequence: string | null): StreamEvent {
    const delta = { stop_reason: reason, stop_sequence: sequence }
    const usage = writeMessagesUsage(this.#usage)
    return named('message_delta', { type: 'message_delta', delta, usage })
  }
}

function named(event: string, data: JsonObject): StreamEvent {
  return { event, data: JSON.stringify(data) }
}

/** Writes streamed responses of Converse. */
import {
  laterUsage,
  type ResponseEvent,
  type ResponseEventWriter,
  type StreamEvent,
  type Usage,
} from '../../chat.ts'
import type { JsonObject } from '../../json/json.ts'
import { exceptionPrefix } from './stream.ts'
import {
  streamExceptionOf,
  writeConverseCitation,
  writeConverseStop,
  writeConverseUsage,
  writeMadeImage,
} from './write-response.ts'

/** Index of the block with a refusal, which no other block has. */
const refusalIndex = -1

const eventOf = (event: string, fields: JsonObject): StreamEvent => ({
  event,
  data: JSON.stringify(fields),
})

/** Numbers blocks without gaps. The reason of the end and the usage come last. */
export class ConverseEventWriter implements ResponseEventWriter {
  /** Indexes of open blocks for the client, by their index in the common form. */
  readonly #open = new Map<number, { readonly index: number; readonly isCall: boolean }>()
  #next = 0
  #isStarted = false
  #isOver = false
  #stop = writeConverseStop('end')
  #usage: Usage | undefined

  write(event: ResponseEvent): readonly StreamEvent[] {
    switch (event.type) {
      case 'start':
        this.#isStarted = true
        this.#usage = event.usage
        return [eventOf('messageStart', { role: 'assistant' })]
      case 'text':
        return this.#delta(event.index, { text: event.text })
      case 'refusal':
        return this.#delta(refusalIndex, { text: event.text })
      case 'citation':
        return this.#delta(event.index, { citation: writeConverseCitation(event.citation) })
      case 'thinking':
        return this.#think(event.index, event.text, event.signature)
      case 'redacted-thinking':
        return this.#delta(event.index, { reasoningContent: { redactedContent: event.data } })
      case 'made-image':
        return [...this.#start(event.index, writeMadeImage(event)), ...this.#close(event.index)]
      case 'tool-start': {
        const { index, id, name } = event
        return this.#start(index, { toolUse: { toolUseId: id, name } }, true)
      }
      case 'tool-input':
        if (!this.#open.has(event.index)) return []
        return [this.#deltaEvent(event.index, { toolUse: { input: event.json } })]
      case 'block-stop':
        return this.#close(event.index)
      case 'stop':
        this.#stop = writeConverseStop(event.reason, event.stopSequence)
        return []
      case 'usage':
        this.#usage = laterUsage(this.#usage, event.usage)
        return []
      case 'error':
        this.#isOver = true
        return [
          eventOf(exceptionPrefix + streamExceptionOf(event.error), {
            message: event.error.message,
          }),
        ]
      case 'end':
        return []
    }
  }

  finish(isClean: boolean): readonly StreamEvent[] {
    if (!isClean || !this.#isStarted || this.#isOver) return []
    this.#isOver = true
    const metrics = { latencyMs: 0 }
    return [
      ...[...this.#open.keys()].flatMap((index) => this.#close(index)),
      eventOf('messageStop', { stopReason: this.#stop }),
      eventOf('metadata', { usage: writeConverseUsage(this.#usage), metrics }),
    ]
  }

  #think(index: number, text: string, signature: string | undefined): StreamEvent[] {
    return [
      ...(text === '' ? [] : this.#delta(index, { reasoningContent: { text } })),
      ...(signature === undefined ? [] : this.#delta(index, { reasoningContent: { signature } })),
    ]
  }

  /** Opens a block unless it is open, and closes the others: only calls may be open together. */
  #openBlock(index: number, isCall: boolean): StreamEvent[] {
    if (this.#open.has(index)) return []
    const others = [...this.#open].filter(([, open]) => !isCall || !open.isCall)
    const events = others.flatMap(([other]) => this.#close(other))
    this.#open.set(index, { index: this.#next++, isCall })
    return events
  }

  #start(index: number, start: JsonObject, isCall = false): StreamEvent[] {
    const events = this.#openBlock(index, isCall)
    return [...events, eventOf('contentBlockStart', { contentBlockIndex: this.#at(index), start })]
  }

  #delta(index: number, delta: JsonObject): StreamEvent[] {
    return [...this.#openBlock(index, false), this.#deltaEvent(index, delta)]
  }

  #deltaEvent(index: number, delta: JsonObject): StreamEvent {
    return eventOf('contentBlockDelta', { contentBlockIndex: this.#at(index), delta })
  }

  #at(index: number): number {
    return this.#open.get(index)?.index ?? 0
  }

  #close(index: number): StreamEvent[] {
    const open = this.#open.get(index)
    if (open === undefined) return []
    this.#open.delete(index)
    return [eventOf('contentBlockStop', { contentBlockIndex: open.index })]
  }
}

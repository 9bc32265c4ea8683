/** Server-sent events (WHATWG HTML, 9.2), decoded from bytes however they are cut, and written. */
import { StringDecoder } from 'node:string_decoder'
import type { StreamEvent } from '../chat.ts'
import { LlmError } from '../llm-error.ts'

export class SseDecoder {
  readonly #maxEvent: number
  readonly #utf8 = new StringDecoder('utf8')
  #rest = ''
  #event: string | undefined
  #data: string[] = []
  #isFirst = true

  /** `maxEvent`: characters that one event may have. */
  constructor(maxEvent: number) {
    this.#maxEvent = maxEvent
  }

  /** Is there a part of an event that has not come whole? */
  get isInside(): boolean {
    return this.#rest !== '' || this.#data.length > 0
  }

  /** @throws LlmError 502 for an event that is too large. */
  push(chunk: Uint8Array): StreamEvent[] {
    let text =
      this.#rest + this.#utf8.write(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length))
    if (this.#isFirst && text !== '') {
      this.#isFirst = false
      if (text.startsWith('\uFEFF')) text = text.slice(1)
    }
    const events: StreamEvent[] = []
    let at = 0
    while (true) {
      const end = endOfLine(text, at)
      if (end === undefined) break
      this.#line(text.slice(at, end.at), events)
      at = end.next
    }
    this.#rest = text.slice(at)
    if (this.#rest.length > this.#maxEvent) throw tooLarge()
    return events
  }

  /** The stream is over: an event without its empty line still counts where it has data. */
  finish(): StreamEvent[] {
    const events: StreamEvent[] = []
    if (this.#rest !== '') this.#line(this.#rest.replace(/\r$/, ''), events)
    this.#rest = ''
    this.#dispatch(events)
    return events
  }

  #line(line: string, events: StreamEvent[]): void {
    if (line === '') {
      this.#dispatch(events)
      return
    }
    const colon = line.indexOf(':')
    if (colon === 0) return
    const name = colon < 0 ? line : line.slice(0, colon)
    const start = line[colon + 1] === ' ' ? colon + 2 : colon + 1
    const value = colon < 0 ? '' : line.slice(start)
    if (name === 'data') {
      this.#data.push(value)
      if (this.#data.reduce((sum, { length }) => sum + length, 0) > this.#maxEvent) throw tooLarge()
    } else if (name === 'event') this.#event = value
  }

  #dispatch(events: StreamEvent[]): void {
    if (this.#data.length > 0) events.push({ event: this.#event, data: this.#data.join('\n') })
    this.#event = undefined
    this.#data = []
  }
}

const tooLarge = () => new LlmError(502, 'an event of the answer is too large')

/** Lines end with CR LF, LF or CR; a CR at the very end may be half of a CR LF. */
function endOfLine(text: string, from: number): { at: number; next: number } | undefined {
  for (let at = from; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === 10) return { at, next: at + 1 }
    if (code !== 13) continue
    if (at + 1 === text.length) return undefined
    return { at, next: text.charCodeAt(at + 1) === 10 ? at + 2 : at + 1 }
  }
  return undefined
}

/** One event as text; data with line breaks becomes several lines. */
export function writeSse({ event, data }: StreamEvent): string {
  const lines = data.includes('\n')
    ? data
        .split('\n')
        .map((line) => `data: ${line}\n`)
        .join('')
    : `data: ${data}\n`
  return event === undefined ? `${lines}\n` : `event: ${event}\n${lines}\n`
}

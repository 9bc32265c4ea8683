/** Frames the events of a streamed response for clients. */
import type { StreamEvent } from '../chat.ts'
import type { Framing } from '../format.ts'
import { conversedEvent } from '../formats/converse/stream.ts'
import { encodeChunk } from './chunks.ts'
import { encodeEvent } from './event-stream.ts'
import { writeSse } from './sse.ts'

/** Encodes the events of one stream, in order. */
export interface EventEncoder {
  /** Returns the bytes of the next events. */
  encode(events: readonly StreamEvent[]): Uint8Array
  /** Returns what follows the last event. */
  end(): Uint8Array
}

/** Media types of streams. */
export const mediaTypes: Readonly<Record<Framing, string>> = {
  sse: 'text/event-stream',
  'json-array': 'application/json',
  'event-stream': 'application/vnd.amazon.eventstream',
  chunks: 'application/vnd.amazon.eventstream',
}

const nothing = new Uint8Array(0)

export const eventBytes = (events: readonly StreamEvent[]): Uint8Array =>
  Buffer.from(events.map(writeSse).join(''))

const encoderOf = (encode: EventEncoder['encode']): EventEncoder => ({
  encode,
  end: () => nothing,
})

const inFrames = (encode: (event: StreamEvent) => Buffer): EventEncoder =>
  encoderOf((events) => Buffer.concat(events.map(encode)))

/** Writes events as the elements of an array, which the client gets one by one. */
class ArrayEncoder implements EventEncoder {
  #separator = '['

  encode(events: readonly StreamEvent[]): Uint8Array {
    let text = ''
    for (const { data } of events) {
      if (data === '' || data === '[DONE]') continue
      text += `${this.#separator}${data}`
      this.#separator = ',\r\n'
    }
    return Buffer.from(text)
  }

  end(): Uint8Array {
    return Buffer.from(this.#separator === '[' ? '[]' : ']')
  }
}

/** Returns the encoder of one stream. */
export function eventEncoder(framing: Framing): EventEncoder {
  switch (framing) {
    case 'sse':
      return encoderOf(eventBytes)
    case 'json-array':
      return new ArrayEncoder()
    case 'event-stream':
      return inFrames((event) => encodeEvent(conversedEvent(event)))
    case 'chunks':
      return inFrames(encodeChunk)
  }
}

/**
 * Events in base64, as InvokeModel frames them: each binary frame is a `chunk` whose payload is `{"bytes": ...}`.
 */
import type { EventDecoder, StreamEvent } from '../chat.ts'
import { exceptionPrefix } from '../formats/converse/stream.ts'
import { streamExceptionOf } from '../formats/converse/write-response.ts'
import { objectAt, parseJson, stringAt } from '../json/json.ts'
import { LlmError } from '../llm-error.ts'
import { EventStreamDecoder, encodeEvent } from './event-stream.ts'

export class ChunkDecoder implements EventDecoder {
  readonly #frames: EventStreamDecoder
  readonly missingEnd = undefined

  /** `maxFrame` is the maximum size of a frame in bytes. */
  constructor(maxFrame: number) {
    this.#frames = new EventStreamDecoder(maxFrame)
  }

  get isInside(): boolean {
    return this.#frames.isInside
  }

  push(chunk: Uint8Array, onEvent: (event: StreamEvent) => void): void {
    this.#frames.push(chunk, (frame) => {
      if (frame.event === chunkName) onEvent(eventInChunk(frame.data))
      else if (frame.event?.startsWith(exceptionPrefix)) onEvent(frame)
    })
  }
}

const chunkName = 'chunk'

function eventInChunk(payload: string): StreamEvent {
  const bytes = stringAt(parseJson(payload), 'bytes')
  if (bytes === undefined) throw new LlmError(502, 'a chunk of the response has no bytes')
  const data = Buffer.from(bytes, 'base64').toString('utf8')
  return { event: stringAt(parseJson(data), 'type'), data }
}

/** Encodes an event; an error becomes an exception, which SDKs expect in its place. */
export function encodeChunk(event: StreamEvent): Buffer {
  const { event: name, data } = event
  if (name?.startsWith(exceptionPrefix)) return encodeEvent(event)
  if (name === 'error') {
    const error = objectAt(parseJson(data), 'error')
    const type = streamExceptionOf({ status: 502, kind: stringAt(error, 'type') })
    const message = stringAt(error, 'message') ?? ''
    return encodeEvent({ event: exceptionPrefix + type, data: JSON.stringify({ message }) })
  }
  const bytes = Buffer.from(data).toString('base64')
  return encodeEvent({ event: chunkName, data: JSON.stringify({ bytes }) })
}

/**
 * `application/vnd.amazon.eventstream`: binary frames with two checksums.
 *
 *   u32 total length | u32 length of headers | u32 CRC-32 of those 8 bytes
 *   headers | payload | u32 CRC-32 of everything before
 *
 * All numbers are big-endian. A header is a length byte, the name, a type byte and a value.
 */
import { crc32 } from 'node:zlib'
import { GrowingBytes } from '../../../base/growing-bytes.ts'
import type { EventDecoder, StreamEvent } from '../chat.ts'
import { eventTooLarge, LlmError } from '../llm-error.ts'
import { exceptionPrefix } from './converse/stream.ts'

const preludeLength = 12
/** Prelude and the checksum at the end. */
const overhead = preludeLength + 4

/** Lengths of header values by their type; strings and bytes have a length of their own. */
const fixedLengths: Readonly<Record<number, number>> = {
  0: 0,
  1: 0,
  2: 1,
  3: 2,
  4: 4,
  5: 8,
  8: 8,
  9: 16,
}
const bytesType = 6
const stringType = 7

/** Where the value of a header begins and ends; `at` is behind the type. */
function valueSpan(bytes: Buffer, type: number, at: number): readonly [start: number, end: number] {
  if (type !== stringType && type !== bytesType) {
    const length = fixedLengths[type]
    if (length === undefined) throw broken()
    return [at, at + length]
  }
  if (at + 2 > bytes.length) throw broken()
  return [at + 2, at + 2 + bytes.readUInt16BE(at)]
}

/** @throws LlmError 502 where the headers do not fit their length. */
function readHeaders(bytes: Buffer): Map<string, string> {
  const headers = new Map<string, string>()
  let at = 0
  while (at < bytes.length) {
    const nameEnd = at + 1 + (bytes[at] ?? 0)
    const type = bytes[nameEnd]
    if (type === undefined) throw broken()
    const [start, end] = valueSpan(bytes, type, nameEnd + 1)
    if (end > bytes.length) throw broken()
    const name = bytes.toString('utf8', at + 1, nameEnd)
    if (type === stringType) headers.set(name, bytes.toString('utf8', start, end))
    at = end
  }
  return headers
}

const broken = () => new LlmError(502, 'the answer is not a valid event stream')

function eventOf(headers: ReadonlyMap<string, string>, data: string): StreamEvent {
  const type = headers.get(':message-type') ?? 'event'
  if (type === 'event') return { event: headers.get(':event-type') ?? '', data }
  const kind = headers.get(':exception-type') ?? headers.get(':error-code') ?? type
  return { event: `${exceptionPrefix}${kind}`, data }
}

/** Takes frames out of a stream of bytes, however it is cut. */
export class EventStreamDecoder implements EventDecoder {
  readonly #maxFrame: number
  /** A frame whose end has not arrived. */
  readonly #frame = new GrowingBytes()

  /** `maxFrame`: bytes that one frame may have. */
  constructor(maxFrame: number) {
    this.#maxFrame = maxFrame
  }

  get isInside(): boolean {
    return this.#frame.length > 0
  }

  push(chunk: Uint8Array, onEvent: (event: StreamEvent) => void): void {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length)
    let at = 0
    while (at < bytes.length) {
      // The prelude tells how long the frame is; only then is more of it taken.
      at = this.#take(bytes, at, preludeLength)
      if (this.#frame.length < preludeLength) return
      const total = this.#lengthOf(this.#frame.content)
      at = this.#take(bytes, at, total)
      if (this.#frame.length < total) return
      const event = readFrame(this.#frame.content)
      this.#frame.clear()
      onEvent(event)
    }
  }

  /** Adds bytes until the frame has so many; gives where the others begin. */
  #take(bytes: Buffer, at: number, wanted: number): number {
    const end = Math.min(bytes.length, at + Math.max(0, wanted - this.#frame.length))
    this.#frame.add(bytes, at, end)
    return end
  }

  #lengthOf(prelude: Buffer): number {
    if (this.#frame.length > preludeLength) return prelude.readUInt32BE(0)
    const total = prelude.readUInt32BE(0)
    if (crc32(prelude.subarray(0, 8)) !== prelude.readUInt32BE(8)) throw broken()
    if (total < overhead || prelude.readUInt32BE(4) > total - overhead) throw broken()
    if (total > this.#maxFrame) throw eventTooLarge()
    return total
  }
}

function readFrame(bytes: Buffer): StreamEvent {
  const payloadStart = preludeLength + bytes.readUInt32BE(4)
  const payloadEnd = bytes.length - 4
  if (crc32(bytes.subarray(0, payloadEnd)) !== bytes.readUInt32BE(payloadEnd)) throw broken()
  const headers = readHeaders(bytes.subarray(preludeLength, payloadStart))
  return eventOf(headers, bytes.toString('utf8', payloadStart, payloadEnd))
}

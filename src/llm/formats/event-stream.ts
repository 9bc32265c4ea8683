/**
 * `application/vnd.amazon.eventstream`: binary frames with two checksums.
 *
 *   u32 total length | u32 length of headers | u32 CRC-32 of those 8 bytes
 *   headers | payload | u32 CRC-32 of everything before
 *
 * All numbers are big-endian. A header is a length byte, the name, a type byte and a value.
 */
import { crc32 } from 'node:zlib'
import type { StreamEvent } from '../chat.ts'
import { LlmError } from '../llm-error.ts'
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
export class EventStreamDecoder {
  readonly #maxFrame: number
  #rest: Buffer = Buffer.alloc(0)

  /** `maxFrame`: bytes that one frame may have. */
  constructor(maxFrame: number) {
    this.#maxFrame = maxFrame
  }

  /** Are there bytes of a frame that has not come whole? */
  get isInside(): boolean {
    return this.#rest.length > 0
  }

  /** @throws LlmError 502 for a frame that is too long or whose checksums are wrong. */
  push(chunk: Uint8Array): StreamEvent[] {
    const events: StreamEvent[] = []
    let bytes = this.#rest.length === 0 ? Buffer.from(chunk) : Buffer.concat([this.#rest, chunk])
    while (bytes.length >= preludeLength) {
      const total = bytes.readUInt32BE(0)
      const headersLength = bytes.readUInt32BE(4)
      if (crc32(bytes.subarray(0, 8)) !== bytes.readUInt32BE(8)) throw broken()
      if (total < overhead || headersLength > total - overhead) throw broken()
      if (total > this.#maxFrame) throw new LlmError(502, 'an event of the answer is too large')
      if (bytes.length < total) break
      const payloadEnd = total - 4
      if (crc32(bytes.subarray(0, payloadEnd)) !== bytes.readUInt32BE(payloadEnd)) throw broken()
      const payloadStart = preludeLength + headersLength
      const headers = readHeaders(bytes.subarray(preludeLength, payloadStart))
      events.push(eventOf(headers, bytes.toString('utf8', payloadStart, payloadEnd)))
      bytes = bytes.subarray(total)
    }
    this.#rest = bytes
    return events
  }
}

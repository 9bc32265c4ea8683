/**
 * Decodes `application/vnd.amazon.eventstream`, whose frames are binary and have two checksums:
 *
 *   u32 total length | u32 length of headers | u32 CRC-32 of those 8 bytes
 *   headers | payload | u32 CRC-32 of everything before
 *
 * All numbers are big-endian. A header is a length byte, the name, a type byte and a value.
 */
import { crc32 } from 'node:zlib'
import { bufferOf } from '../../../ground/base/buffers.ts'
import { GrowingBytes } from '../../../ground/base/growing-bytes.ts'
import type { EventDecoder, StreamEvent } from '../chat.ts'
import { exceptionPrefix } from '../formats/converse/stream.ts'
import { eventTooLarge, LlmError } from '../llm-error.ts'

const preludeLength = 12
/** Length of the prelude and the final checksum. */
const overhead = preludeLength + 4

/** Length of a header value, by type. Values of type string or bytes have a length field instead. */
const fixedLengths = [0, 0, 1, 2, 4, 8, undefined, undefined, 8, 16]
const bytesType = 6
const stringType = 7

/** Returns the start and end of a header value; `at` is the position after the type byte. */
function valueSpan(bytes: Buffer, type: number, at: number): readonly [start: number, end: number] {
  if (type !== stringType && type !== bytesType) {
    const length = fixedLengths[type]
    if (length === undefined) throw invalidStream()
    return [at, at + length]
  }
  if (at + 2 > bytes.length) throw invalidStream()
  return [at + 2, at + 2 + bytes.readUInt16BE(at)]
}

/** Reads the headers with string values. @throws LlmError 502 if the headers are not valid. */
function readHeaders(bytes: Buffer): Map<string, string> {
  const headers = new Map<string, string>()
  let at = 0
  while (at < bytes.length) {
    const nameEnd = at + 1 + (bytes[at] ?? 0)
    const type = bytes[nameEnd]
    if (type === undefined) throw invalidStream()
    const [start, end] = valueSpan(bytes, type, nameEnd + 1)
    if (end > bytes.length) throw invalidStream()
    const name = bytes.toString('utf8', at + 1, nameEnd)
    if (type === stringType) headers.set(name, bytes.toString('utf8', start, end))
    at = end
  }
  return headers
}

const invalidStream = () => new LlmError(502, 'the response is not a valid event stream')

/** Decodes frames from a stream of bytes, whose chunks may end anywhere. */
export class EventStreamDecoder implements EventDecoder {
  readonly #maxFrame: number
  /** The bytes of a frame whose end has not arrived. */
  readonly #frame = new GrowingBytes()

  /** `maxFrame` is the maximum size of a frame in bytes. */
  constructor(maxFrame: number) {
    this.#maxFrame = maxFrame
  }

  /** Frames have no line after them. */
  readonly missingEnd = undefined

  get isInside(): boolean {
    return this.#frame.length > 0
  }

  push(chunk: Uint8Array, onEvent: (event: StreamEvent) => void): void {
    const bytes = bufferOf(chunk)
    let at = 0
    while (at < bytes.length) {
      // The prelude contains the length of the frame.
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

  /** Adds bytes until the frame has the wanted length. Returns the position after the added bytes. */
  #take(bytes: Buffer, at: number, wanted: number): number {
    const end = Math.min(bytes.length, at + Math.max(0, wanted - this.#frame.length))
    this.#frame.add(bytes, at, end)
    return end
  }

  #lengthOf(prelude: Buffer): number {
    if (this.#frame.length > preludeLength) return prelude.readUInt32BE(0)
    const total = prelude.readUInt32BE(0)
    if (crc32(prelude.subarray(0, 8)) !== prelude.readUInt32BE(8)) throw invalidStream()
    if (total < overhead || prelude.readUInt32BE(4) > total - overhead) throw invalidStream()
    if (total > this.#maxFrame) throw eventTooLarge()
    return total
  }
}

/** Encodes a frame with these string headers. */
function encodeFrame(
  headers: readonly (readonly [name: string, value: string])[],
  payload: string,
): Buffer {
  let headerLength = 0
  for (const [name, value] of headers) headerLength += 4 + name.length + Buffer.byteLength(value)
  const total = overhead + headerLength + Buffer.byteLength(payload)
  const bytes = Buffer.allocUnsafe(total)
  bytes.writeUInt32BE(total, 0)
  bytes.writeUInt32BE(headerLength, 4)
  bytes.writeUInt32BE(crc32(bytes.subarray(0, 8)), 8)
  let at = preludeLength
  for (const [name, value] of headers) {
    at = bytes.writeUInt8(name.length, at)
    at += bytes.write(name, at, 'latin1')
    at = bytes.writeUInt8(stringType, at)
    at = bytes.writeUInt16BE(Buffer.byteLength(value), at)
    at += bytes.write(value, at)
  }
  at += bytes.write(payload, at)
  bytes.writeUInt32BE(crc32(bytes.subarray(0, at)), at)
  return bytes
}

const jsonHeader = [':content-type', 'application/json'] as const

/** Encodes an event, or an exception, which has the prefix in its name. */
export function encodeEvent({ event = '', data }: StreamEvent): Buffer {
  const isException = event.startsWith(exceptionPrefix)
  const kind = isException ? 'exception' : 'event'
  const type = isException ? event.slice(exceptionPrefix.length) : event
  return encodeFrame([[`:${kind}-type`, type], jsonHeader, [':message-type', kind]], data)
}

function readFrame(bytes: Buffer): StreamEvent {
  const payloadStart = preludeLength + bytes.readUInt32BE(4)
  const payloadEnd = bytes.length - 4
  if (crc32(bytes.subarray(0, payloadEnd)) !== bytes.readUInt32BE(payloadEnd)) throw invalidStream()
  const headers = readHeaders(bytes.subarray(preludeLength, payloadStart))
  const data = bytes.toString('utf8', payloadStart, payloadEnd)
  const type = headers.get(':message-type') ?? 'event'
  if (type === 'event') return { event: headers.get(':event-type') ?? '', data }
  const kind = headers.get(':exception-type') ?? headers.get(':error-code') ?? type
  return { event: `${exceptionPrefix}${kind}`, data }
}

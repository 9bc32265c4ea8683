/**
 * Divides a stream of JSON documents into parts: lines (NDJSON), or server-sent events (WHATWG HTML, 9.2.6), whose `data`
 * is a document. All parts together are exactly the bytes of the stream, so that a part can be forwarded unchanged.
 */
import { GrowingBytes } from '../../ground/base/growing-bytes.ts'

/** How documents follow one another. */
export type DocumentFraming = 'lines' | 'events'

/** A line or an event. */
export interface StreamPart {
  readonly bytes: Buffer
  /** The document in it; undefined if there is none, such as in a comment or in the last event `[DONE]`. */
  readonly document: Buffer | undefined
  /** Returns the part with another document. */
  with(document: Buffer): Buffer
}

/** Thrown if a part exceeds the limit. */
export class StreamPartTooLarge extends Error {
  override readonly name = 'StreamPartTooLarge'
}

const lineFeed = 0x0a
const carriageReturn = 0x0d

/** Reads parts from bytes in pieces of any size, in linear time. */
export class DocumentStream {
  readonly #framing: DocumentFraming
  /** Maximum number of bytes of a part. */
  readonly #limit: number
  readonly #held = new GrowingBytes()
  /** Number of held bytes that were searched for the end of the part. */
  #searched = 0
  /** Where the last line of the part begins. */
  #lineStart = 0
  #isFirst = true

  constructor(framing: DocumentFraming, limit: number) {
    this.#framing = framing
    this.#limit = limit
  }

  /** Calls `onPart` for each part that the bytes complete. @throws StreamPartTooLarge */
  push(chunk: Uint8Array, onPart: (part: StreamPart) => void): void {
    this.#held.add(chunk, 0, chunk.length)
    const bytes = this.#held.content
    let start = 0
    let at = this.#searched
    while (at < bytes.length) {
      if (at === start) {
        at = this.#passBlank(bytes, at, onPart)
        start = at
        if (at === bytes.length) break
      }
      const byte = bytes[at++]
      if (byte !== lineFeed && (byte !== carriageReturn || this.#framing === 'lines')) continue
      // A line may end with two bytes, the second of which has not arrived yet.
      if (byte === carriageReturn && at === bytes.length) {
        at--
        break
      }
      if (byte === carriageReturn && bytes[at] === lineFeed) at++
      const isEnd = this.#endsPart(bytes, at)
      this.#lineStart = at
      if (!isEnd) continue
      this.#end(bytes.subarray(start, at), onPart)
      start = at
    }
    this.#searched = at - start
    this.#lineStart -= start
    this.#keep(bytes, start)
  }

  /** Calls `onPart` for the rest of the stream. */
  end(onPart: (part: StreamPart) => void): void {
    const { length } = this.#held
    if (length > 0) this.#end(Buffer.from(this.#held.content), onPart)
    this.#held.clear()
  }

  /** Whether the line that ends at `end` is the last one of its part. */
  #endsPart(bytes: Buffer, end: number): boolean {
    return this.#framing === 'lines' || isBlank(bytes, this.#lineStart, end)
  }

  /** Passes all blank lines before a part as one, because a body may consist of them. Returns where the part begins. */
  #passBlank(bytes: Buffer, start: number, onPart: (part: StreamPart) => void): number {
    let end = start
    while (bytes[end] === lineFeed || bytes[end] === carriageReturn) end++
    if (end === start) return start
    const blanks = bytes.subarray(start, end)
    onPart({ bytes: blanks, document: undefined, with: (other) => other })
    this.#isFirst = false
    this.#lineStart = end
    return end
  }

  #keep(bytes: Buffer, start: number): void {
    if (bytes.length - start > this.#limit) throw new StreamPartTooLarge()
    if (start === 0) return
    const rest = Buffer.from(bytes.subarray(start))
    this.#held.clear()
    this.#held.add(rest, 0, rest.length)
  }

  #end(bytes: Buffer, onPart: (part: StreamPart) => void): void {
    if (bytes.length > this.#limit) throw new StreamPartTooLarge()
    onPart(this.#framing === 'lines' ? linePart(bytes) : eventPart(bytes, this.#isFirst))
    this.#isFirst = false
  }
}

const isBlank = (bytes: Buffer, start: number, end: number): boolean => {
  const first = bytes[start]
  return start < end && (first === lineFeed || first === carriageReturn)
}

const blank = /^[ \t\r\n]*$/

function linePart(bytes: Buffer): StreamPart {
  const end = bytes.at(-1) === lineFeed ? bytes.length - 1 : bytes.length
  const line = bytes.subarray(0, end)
  const document = blank.test(line.toString('latin1')) ? undefined : line
  return { bytes, document, with: (other) => Buffer.concat([other, bytes.subarray(end)]) }
}

/** Fields and comments of an event, with their line ends. */
const lines = /[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+$/g
const dataField = /^data(?::[ ]?([^\r\n]*))?(?:[\r\n]|$)/
/** The byte order mark in UTF-8, as Latin-1. It is no part of the first field of a stream. */
const byteOrderMark = '\xef\xbb\xbf'

function eventPart(bytes: Buffer, isFirst: boolean): StreamPart {
  const text = bytes.toString('latin1')
  const mark = isFirst && text.startsWith(byteOrderMark) ? byteOrderMark : ''
  const all = text.slice(mark.length).match(lines) ?? []
  const data = all.flatMap((line) => {
    const found = dataField.exec(line)
    return found === null ? [] : [found[1] ?? '']
  })
  const joined = data.join('\n')
  const isEmpty = blank.test(joined) || joined === '[DONE]'
  return {
    bytes,
    document: isEmpty ? undefined : Buffer.from(joined, 'latin1'),
    with: (other) => Buffer.from(mark + withData(all, other.toString('latin1')), 'latin1'),
  }
}

/** Returns an event with other data, which replaces the first line with data. */
function withData(all: readonly string[], data: string): string {
  let isWritten = false
  const written = all.map((line) => {
    if (!dataField.test(line)) return line
    if (isWritten) return ''
    isWritten = true
    return data.replace(/^/gm, 'data: ') + (/(?:\r\n|\r|\n)$/.exec(line)?.[0] ?? '')
  })
  return written.join('')
}

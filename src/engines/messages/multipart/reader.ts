/**
 * Reads a multipart body in pieces of any size, in linear time, without keeping the content of parts. Delimiters must
 * be exactly as RFC 2046 writes them: a line that servers may take for a delimiter is refused, so that the provider
 * cannot find other parts than the gateway.
 */
import { bufferOf } from '../../../ground/base/buffers.ts'
import { GrowingBytes } from '../../../ground/base/growing-bytes.ts'
import { malformed, maxPartHead, type PartHead, readPartHead } from './part-head.ts'

/** Maximum number of parts of one body. */
const maxParts = 1_000

export const lineEnd = Buffer.from('\r\n')
const headEnd = Buffer.from('\r\n\r\n')

interface PartHandler {
  /** Called for a part, with the bytes of its head, which include the empty line. */
  onPart(head: PartHead, bytes: Buffer): void
  /** Called with content of the part, which is valid during the call. */
  onContent(bytes: Buffer): void
  onPartEnd(): void
  /** Called when the last delimiter has arrived. */
  onLast(): void
}

type State = 'start' | 'head' | 'content' | 'delimited' | 'last'

export class MultipartReader {
  readonly #handler: PartHandler
  /** The first delimiter; others follow a line end. */
  readonly #first: Buffer
  /** The end of a line, and the boundary: a delimiter if a carriage return precedes it. */
  readonly #delimiter: Buffer
  /** What some servers take for a delimiter. */
  readonly #bareReturn: Buffer
  #state: State = 'start'
  /** Bytes that are not decided yet: fewer than a delimiter has, except in heads. */
  #rest: Buffer = Buffer.alloc(0)
  /** Number of bytes of `#rest` that belong to the head before the content. */
  #before = 0
  readonly #head = new GrowingBytes()
  #parts = 0

  constructor(boundary: string, handler: PartHandler) {
    this.#handler = handler
    this.#first = Buffer.from(`--${boundary}`, 'latin1')
    this.#delimiter = Buffer.from(`\n--${boundary}`, 'latin1')
    this.#bareReturn = Buffer.from(`\r--${boundary}`, 'latin1')
  }

  /** @throws LlmError 400 if the body is malformed */
  push(chunk: Uint8Array): void {
    let bytes = bufferOf(chunk)
    while (bytes.length > 0) bytes = this.#step(bytes)
  }

  /** @throws LlmError 400 if the body is cut off */
  end(): void {
    const isWhole = this.#state === 'last' && this.#rest.length % lineEnd.length === 0
    if (!isWhole) throw malformed(this.place, 'the body ends before its last boundary')
  }

  /** Whether a line end follows the last boundary. */
  get endsLine(): boolean {
    return this.#rest.length > 0
  }

  /** Names the part that is being read, for errors. */
  get place(): string {
    return `part ${Math.max(1, this.#parts)}`
  }

  /** Reads some bytes, and returns the others. */
  #step(bytes: Buffer): Buffer {
    if (this.#state === 'head') return this.#readHead(bytes)
    const all = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes])
    this.#rest = all.subarray(all.length)
    if (this.#state === 'content') return this.#readContent(all)
    if (this.#state === 'last') return this.#readLast(all)
    return this.#state === 'start' ? this.#readStart(all) : this.#readDelimited(all)
  }

  /** Keeps bytes that are too few for a decision. */
  #keep(bytes: Buffer): Buffer {
    this.#rest = Buffer.from(bytes)
    return bytes.subarray(bytes.length)
  }

  #readStart(all: Buffer): Buffer {
    const { length } = this.#first
    if (all.length < length && this.#first.subarray(0, all.length).equals(all)) {
      return this.#keep(all)
    }
    if (!all.subarray(0, length).equals(this.#first)) {
      throw malformed('part 1', 'the body must begin with the boundary of content-type')
    }
    this.#state = 'delimited'
    return all.subarray(length)
  }

  /** Reads what follows a boundary. */
  #readDelimited(all: Buffer): Buffer {
    if (all.length < lineEnd.length) return this.#keep(all)
    const text = all.toString('latin1', 0, lineEnd.length)
    if (text === '--') {
      this.#state = 'last'
      this.#handler.onLast()
    } else if (text === '\r\n') {
      this.#parts++
      if (this.#parts > maxParts) throw malformed(this.place, `there are more than ${maxParts}`)
      this.#state = 'head'
      this.#head.clear()
    } else throw malformed(this.place, 'a line that is no boundary begins like one')
    return all.subarray(lineEnd.length)
  }

  #readHead(bytes: Buffer): Buffer {
    const before = this.#head.length
    const taken = Math.min(bytes.length, maxPartHead + 1 - before)
    this.#head.add(bytes, 0, taken)
    const { content } = this.#head
    const end = content.indexOf(headEnd, Math.max(0, before - headEnd.length))
    if (end < 0) {
      if (content.length <= maxPartHead) return bytes.subarray(taken)
      throw malformed(this.place, `the head has more than ${maxPartHead} bytes`)
    }
    const length = end + headEnd.length
    const head = Buffer.from(content.subarray(0, length))
    this.#handler.onPart(readPartHead(head.subarray(0, end), this.place), head)
    this.#state = 'content'
    // A delimiter needs a line end of its own, so that those of the head are looked at again.
    this.#rest = lineEnd
    this.#before = lineEnd.length
    return bytes.subarray(length - before)
  }

  #readContent(all: Buffer): Buffer {
    const found = all.indexOf(this.#delimiter)
    const bare = all.indexOf(this.#bareReturn)
    const isBare = bare >= 0 && (found < 0 || bare < found)
    const end = found - 1
    if (isBare || (found >= 0 && (all[end] !== 0x0d || end < this.#before))) {
      throw malformed(this.place, 'the boundary must follow a carriage return and a line feed')
    }
    if (found >= 0) {
      this.#emit(all, end)
      this.#handler.onPartEnd()
      this.#state = 'delimited'
      return all.subarray(found + this.#delimiter.length)
    }
    const decided = all.length - this.#delimiter.length
    this.#emit(all, decided)
    return this.#keep(decided > 0 ? all.subarray(decided) : all)
  }

  #emit(all: Buffer, end: number): void {
    if (end > this.#before) this.#handler.onContent(all.subarray(this.#before, end))
    this.#before = Math.max(0, this.#before - Math.max(0, end))
  }

  #readLast(all: Buffer): Buffer {
    if (all.length <= lineEnd.length && lineEnd.subarray(0, all.length).equals(all)) {
      return this.#keep(all)
    }
    throw malformed(this.place, 'something follows the last boundary')
  }
}

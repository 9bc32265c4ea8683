import { latin1Text } from '../../../ground/base/latin1.ts'
import type { BodySink } from '../bytes/body-sink.ts'
import { PieceQueue } from '../bytes/piece-queue.ts'
import type { WriteBuffer } from '../bytes/write-buffers.ts'
import { copyLimit } from '../bytes/write-limits.ts'

/** Maximum number of bytes that are kept so that a request can be resent. */
const replayLimit = 64 * 1024

/**
 * The part of a body that was sent, so that it can be resent. A short body in the same buffer as its
 * head is not copied: its buffer is kept until the body cannot be resent any more.
 */
export class ReplayRecord {
  /** Whether everything that was sent is recorded. */
  isWhole = false
  /** The first piece if it was written as text, which is not overwritten. */
  #text = ''
  /** The buffer that contains the first piece, and the piece's start and end in it. */
  #keptBuffer: WriteBuffer | undefined
  #keptFrom = 0
  #keptTo = 0
  readonly #pieces = new PieceQueue()
  #size = 0

  /** Starts a body. `isWanted`: the body may have to be resent. */
  start(isWanted: boolean): void {
    this.stop()
    this.isWhole = isWanted
  }

  /** Drops the record, because the body need not be resent. */
  stop(): void {
    this.isWhole = false
    this.#forget()
  }

  /** Passes bytes to the sink, and records them as long as they fit. */
  send(sink: BodySink, bytes: Buffer, start: number, end: number): void {
    const size = end - start
    if (this.isWhole && this.#size + size > replayLimit) this.stop()
    if (!this.isWhole) {
      sink.appendBytes(bytes, start, end)
      return
    }
    this.#size += size
    if (this.#size === size && this.#sendFirst(sink, bytes, start, end)) return
    this.#pieces.push(bytes, start, end)
    sink.appendBytes(bytes, start, end)
  }

  /** Returns copies of all recorded pieces in order, and stops recording. */
  take(): Buffer[] {
    const pieces = this.#pieces.take()
    if (this.#text !== '') pieces.unshift(Buffer.from(this.#text, 'latin1'))
    if (this.#keptBuffer !== undefined)
      pieces.unshift(this.#keptBuffer.copy(this.#keptFrom, this.#keptTo))
    this.#forget()
    return pieces
  }

  /** Sends and records without another copy. Returns false if it did neither. */
  #sendFirst(sink: BodySink, bytes: Buffer, start: number, end: number): boolean {
    if (this.#keep(sink, bytes, start, end)) return true
    if (end - start > copyLimit) return false
    this.#text = latin1Text(bytes, start, end)
    sink.appendText(this.#text)
    return true
  }

  #keep(sink: BodySink, bytes: Buffer, start: number, end: number): boolean {
    const buffer = sink.writeBuffer
    const from = buffer?.length ?? 0
    if (buffer?.keep(end - start) !== true) return false
    sink.appendBytes(bytes, start, end)
    this.#keptBuffer = buffer
    this.#keptFrom = from
    this.#keptTo = from + end - start
    return true
  }

  #forget(): void {
    this.#text = ''
    if (this.#pieces.size > 0) this.#pieces.clear()
    this.#size = 0
    this.#keptBuffer?.unkeep()
    this.#keptBuffer = undefined
  }
}

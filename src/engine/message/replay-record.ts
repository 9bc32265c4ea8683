import { PieceQueue } from '../../base/piece-queue.ts'
import type { BodySink } from '../bytes/body-sink.ts'
import { latin1Text } from '../bytes/latin1.ts'
import type { WriteBuffer } from '../bytes/write-buffers.ts'
import { copyLimit } from '../bytes/write-limits.ts'

/** Most bytes that are kept so that a request can be sent again. */
const replayLimit = 64 * 1024

/**
 * What was sent of a body, so that it can be sent again. A short body that shares a buffer with its
 * head is not copied for that: its buffer is kept until it cannot be needed again.
 */
export class ReplayRecord {
  /** Everything that was sent is here. */
  isWhole = false
  /** The first piece if it was written as text, which is not overwritten. */
  #text = ''
  /** Comes before the pieces behind it. */
  #kept: WriteBuffer | undefined
  #keptFrom = 0
  #keptTo = 0
  readonly #pieces = new PieceQueue()
  #size = 0

  /** A body begins that may have to be sent again, or one that need not. */
  start(isWanted: boolean): void {
    this.stop()
    this.isWhole = isWanted
  }

  /** What was sent need not be sent again. */
  stop(): void {
    this.isWhole = false
    this.#forget()
  }

  /** Hands bytes to the sink, and records them while they fit. */
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

  /** All that was recorded, in order, as bytes of their own; nothing is recorded afterwards. */
  take(): Buffer[] {
    const pieces = this.#pieces.take()
    if (this.#text !== '') pieces.unshift(Buffer.from(this.#text, 'latin1'))
    if (this.#kept !== undefined) pieces.unshift(this.#kept.copy(this.#keptFrom, this.#keptTo))
    this.#forget()
    return pieces
  }

  /** Sends and records without another copy; returns false if it did neither. */
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
    this.#kept = buffer
    this.#keptFrom = from
    this.#keptTo = from + end - start
    return true
  }

  #forget(): void {
    this.#text = ''
    if (this.#pieces.size > 0) this.#pieces.clear()
    this.#size = 0
    this.#kept?.unkeep()
    this.#kept = undefined
  }
}

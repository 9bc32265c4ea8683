import { copyOf } from '../bytes/body-copy.ts'
import type { BodySink } from '../bytes/body-sink.ts'
import type { GatherBuffer } from '../bytes/gather-buffers.ts'
import { latin1Text } from '../bytes/latin1.ts'
import { copyLimit } from '../bytes/write-limits.ts'

/** Most bytes that are kept so that a request can be sent again. */
const replayLimit = 64 * 1024

/**
 * What was sent of a body, so that it can be sent again. A short body that was gathered with its
 * head is not copied for that: its buffer is kept until nobody can want it any more.
 */
export class ReplayRecord {
  /** Everything that was sent is here. */
  isWhole = false
  /** Pieces that were written as text are kept as that text, which is nobody's to overwrite. */
  #pieces: (Buffer | string)[] = []
  /** Comes before the pieces. */
  #kept: GatherBuffer | undefined
  #keptFrom = 0
  #keptTo = 0
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
    if (this.#size === size && this.#keep(sink, bytes, start, end)) return
    if (size > copyLimit) {
      this.#pieces.push(copyOf(bytes, start, end))
      sink.appendBytes(bytes, start, end)
      return
    }
    const text = latin1Text(bytes, start, end)
    this.#pieces.push(text)
    sink.appendText(text)
  }

  /** All that was recorded, in order, as bytes of their own; nothing is recorded afterwards. */
  take(): Buffer[] {
    const pieces = this.#pieces.map((piece) =>
      typeof piece === 'string' ? Buffer.from(piece, 'latin1') : piece,
    )
    if (this.#kept !== undefined) pieces.unshift(this.#kept.copy(this.#keptFrom, this.#keptTo))
    this.#forget()
    return pieces
  }

  /** False where the bytes are not sent yet, and must be recorded another way. */
  #keep(sink: BodySink, bytes: Buffer, start: number, end: number): boolean {
    const buffer = sink.gathering
    const from = buffer?.length ?? 0
    if (buffer?.keep(end - start) !== true) return false
    sink.appendBytes(bytes, start, end)
    this.#kept = buffer
    this.#keptFrom = from
    this.#keptTo = from + end - start
    return true
  }

  #forget(): void {
    if (this.#pieces.length > 0) this.#pieces = []
    this.#size = 0
    this.#kept?.unkeep()
    this.#kept = undefined
  }
}

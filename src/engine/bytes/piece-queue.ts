import { GrowingBytes } from '../../base/growing-bytes.ts'
import { copyOf } from './body-copy.ts'

/** Pieces below this size are joined. */
const smallPiece = 4 * 1024
/** Pieces that were joined have about this size. */
const joinedSize = 16 * 1024

/**
 * Bytes that wait, in pieces. Small pieces are joined, so that what is kept is never much larger than
 * what was received, however small the pieces were.
 */
export class PieceQueue {
  #pieces: Buffer[] = []
  #next = 0
  #joined: GrowingBytes | undefined
  size = 0

  /** Copies bytes [start, end). */
  push(bytes: Buffer, start: number, end: number): void {
    const length = end - start
    if (length === 0) return
    const isJoined = this.#joined !== undefined || (length < smallPiece && this.size > 0)
    this.size += length
    if (!isJoined) {
      this.#pieces.push(copyOf(bytes, start, end))
      return
    }
    this.#joined ??= new GrowingBytes()
    this.#joined.add(bytes, start, end)
    if (this.#joined.length >= joinedSize) this.#closeJoined()
  }

  #closeJoined(): void {
    if (this.#joined === undefined) return
    this.#pieces.push(this.#joined.content)
    this.#joined = undefined
  }

  /** The first piece; undefined if none waits. */
  shift(): Buffer | undefined {
    if (this.#next === this.#pieces.length) this.#closeJoined()
    const piece = this.#pieces[this.#next]
    if (piece === undefined) return undefined
    this.size -= piece.length
    if (++this.#next === this.#pieces.length) {
      this.#pieces = []
      this.#next = 0
    }
    return piece
  }

  /** All pieces in order; none waits afterwards. */
  take(): Buffer[] {
    if (this.size === 0) return []
    this.#closeJoined()
    const pieces = this.#next === 0 ? this.#pieces : this.#pieces.slice(this.#next)
    this.#pieces = []
    this.#next = 0
    this.size = 0
    return pieces
  }

  /** Pieces that come before all others; they are not copied. */
  putBack(pieces: readonly Buffer[]): void {
    const later = this.take()
    this.#pieces = [...pieces, ...later].filter(({ length }) => length > 0)
    this.size = this.#pieces.reduce((sum, { length }) => sum + length, 0)
  }
}

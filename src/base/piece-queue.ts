import { Fifo } from './fifo.ts'
import { GrowingBytes } from './growing-bytes.ts'

/** Pieces below this size are joined. */
const smallPiece = 4 * 1024
/** Pieces that were joined have about this size. */
const joinedSize = 16 * 1024
const none = Buffer.alloc(0)

/**
 * Bytes that wait, in pieces. Small pieces are joined, so that what is kept is never much larger than
 * what was received, however small the pieces were.
 */
export class PieceQueue {
  /** What is left of a piece that was taken in part; it comes before the others. */
  #rest: Buffer | undefined
  readonly #pieces = new Fifo<Buffer>()
  #joined: GrowingBytes | undefined
  size = 0

  /** Copies bytes [start, end). */
  push(bytes: Uint8Array, start: number, end: number): void {
    const length = end - start
    if (length === 0) return
    const isJoined = this.#joined !== undefined || (length < smallPiece && this.size > 0)
    this.size += length
    if (!isJoined) {
      this.#pieces.push(Buffer.from(bytes.subarray(start, end)))
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

  /** Removes the first piece; returns undefined if none waits. */
  shift(): Buffer | undefined {
    return this.shiftUpTo(this.size)
  }

  /** Removes the first bytes that lie together, `most` of them at most; undefined if none wait. */
  shiftUpTo(most: number): Buffer | undefined {
    if (this.size === 0) return undefined
    if (this.#pieces.length === 0) this.#closeJoined()
    const piece = this.#rest ?? this.#pieces.take() ?? none
    const isWhole = piece.length <= most
    this.#rest = isWhole ? undefined : piece.subarray(most)
    const taken = isWhole ? piece : piece.subarray(0, most)
    this.size -= taken.length
    return taken
  }

  /** Removes so many bytes, or all if there are fewer. */
  read(length: number): Buffer {
    const first = this.shiftUpTo(length) ?? none
    if (first.length === length || this.size === 0) return first
    const found = Buffer.allocUnsafe(Math.min(length, first.length + this.size))
    found.set(first)
    for (let at = first.length; at < found.length; ) {
      const piece = this.shiftUpTo(found.length - at) ?? none
      found.set(piece, at)
      at += piece.length
    }
    return found
  }

  /** All pieces in order; none waits afterwards. */
  take(): Buffer[] {
    if (this.size === 0) return []
    this.#closeJoined()
    const pieces = this.#pieces.toArray()
    if (this.#rest !== undefined) pieces.unshift(this.#rest)
    this.clear()
    return pieces
  }

  /** All bytes in one; none wait afterwards. */
  takeWhole(): Buffer {
    const pieces = this.take()
    const [first] = pieces
    return first !== undefined && pieces.length === 1 ? first : Buffer.concat(pieces)
  }

  clear(): void {
    this.#rest = undefined
    this.#joined = undefined
    this.#pieces.clear()
    this.size = 0
  }

  /** Pieces that come before all others; they are not copied. */
  putBack(pieces: readonly Buffer[]): void {
    for (const piece of [...pieces, ...this.take()]) {
      if (piece.length === 0) continue
      this.#pieces.push(piece)
      this.size += piece.length
    }
  }
}

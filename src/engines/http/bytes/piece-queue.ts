import { copyOf } from '../../../ground/base/buffers.ts'
import { Fifo } from '../../../ground/base/fifo.ts'
import { GrowingBytes } from '../../../ground/base/growing-bytes.ts'

/** Pieces that are smaller than this are joined. */
const smallPiece = 4 * 1024
/** Approximate size at which a joined piece is complete. */
const joinedSize = 16 * 1024
const none = Buffer.alloc(0)

/** A queue of bytes in pieces. Small pieces are joined to limit the memory overhead of each piece. */
export class PieceQueue {
  /** The rest of a piece that was removed in part; it precedes all other pieces. */
  #rest: Buffer | undefined
  readonly #pieces = new Fifo<Buffer>()
  #joined: GrowingBytes | undefined
  size = 0

  /** Appends a copy of bytes [start, end). */
  push(bytes: Uint8Array, start: number, end: number): void {
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

  /** Removes and returns the first piece; undefined if the queue is empty. */
  shift(): Buffer | undefined {
    return this.shiftUpTo(this.size)
  }

  /** Removes and returns up to `maxBytes` contiguous bytes; undefined if the queue is empty. */
  shiftUpTo(maxBytes: number): Buffer | undefined {
    if (this.size === 0) return undefined
    if (this.#pieces.length === 0) this.#closeJoined()
    const piece = this.#rest ?? this.#pieces.take() ?? none
    const isWhole = piece.length <= maxBytes
    this.#rest = isWhole ? undefined : piece.subarray(maxBytes)
    const taken = isWhole ? piece : piece.subarray(0, maxBytes)
    this.size -= taken.length
    return taken
  }

  /** Removes and returns `length` bytes, or all bytes if there are fewer. */
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

  /** Removes and returns all pieces, in order. */
  take(): Buffer[] {
    if (this.size === 0) return []
    this.#closeJoined()
    const pieces = this.#pieces.toArray()
    if (this.#rest !== undefined) pieces.unshift(this.#rest)
    this.clear()
    return pieces
  }

  /** Joins all pieces to one, which is returned and stays in the queue. */
  joinAll(): Buffer {
    const isOne = this.#rest === undefined && this.#joined === undefined && this.#pieces.length < 2
    if (!isOne) this.putBack([this.takeWhole()])
    this.#closeJoined()
    return this.#pieces.first ?? none
  }

  /** Removes and returns all bytes as one piece. */
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

  /** Inserts pieces at the front of the queue without copying them. */
  putBack(pieces: readonly Buffer[]): void {
    for (const piece of [...pieces, ...this.take()]) {
      if (piece.length === 0) continue
      this.#pieces.push(piece)
      this.size += piece.length
    }
  }
}

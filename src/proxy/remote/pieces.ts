/**
 * Memory for thousands of small, long-lived byte strings. Each by itself would cost as much again in
 * bookkeeping, and leave holes between what comes and goes.
 */

/** Large enough that the system gives and takes each block by itself. */
const blockBytes = 256 * 1024

export class PieceStore {
  #block = new Uint8Array(0)
  #used = 0
  #blocks = 0
  #alive = 0

  /** A copy of the bytes. */
  keep(bytes: Uint8Array): Uint8Array {
    const kept = this.room(bytes.length)
    kept.set(bytes)
    return kept
  }

  /** Memory that the caller fills. */
  room(length: number): Uint8Array {
    this.#alive += length
    if (length > blockBytes / 4) {
      this.#blocks += length
      return new Uint8Array(length)
    }
    if (this.#used + length > this.#block.length) {
      this.#block = new Uint8Array(blockBytes)
      this.#blocks += blockBytes
      this.#used = 0
    }
    const from = this.#used
    this.#used += length
    return this.#block.subarray(from, this.#used)
  }

  /** Says that memory is not needed any more. */
  release(piece: Uint8Array): void {
    this.#alive -= piece.length
  }

  /** Is most of the memory that of pieces which were released? Then everything should be kept anew. */
  get isWasteful(): boolean {
    return this.#blocks > 2 * this.#alive + 4 * blockBytes
  }
}

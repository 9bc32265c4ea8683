/** Number of ended streams that are remembered, a power of two. */
const slotCount = 512

/**
 * The streams of a connection that have ended last, and whether we have reset them. The slot of a
 * stream follows from its number, so a newer stream replaces an older one without a search.
 */
export class PastStreams {
  /** For the stream in each slot: twice its number, plus one if we have reset it. */
  #slots: Float64Array | undefined

  add(id: number, wasReset: boolean): void {
    this.#slots ??= new Float64Array(slotCount)
    this.#slots[(id >>> 1) & (slotCount - 1)] = 2 * id + (wasReset ? 1 : 0)
  }

  /** Returns whether we have reset this stream; undefined if it is not remembered or has not ended. */
  wasReset(id: number): boolean | undefined {
    const slot = this.#slots?.[(id >>> 1) & (slotCount - 1)] ?? 0
    if (slot === 2 * id) return false
    return slot === 2 * id + 1 ? true : undefined
  }
}

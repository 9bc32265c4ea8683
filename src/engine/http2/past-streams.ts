/** How many of the latest streams are known to be over; a power of two. */
const kept = 512

/**
 * Streams that are over, and whether we have reset them: the latest ones of a connection. The number
 * of a stream gives its place, so that a newer one takes it over without a search.
 */
export class PastStreams {
  /** By place: twice the number of the stream, and one more where we have reset it. */
  #places: Float64Array | undefined

  add(id: number, wasReset: boolean): void {
    this.#places ??= new Float64Array(kept)
    this.#places[(id >>> 1) & (kept - 1)] = 2 * id + (wasReset ? 1 : 0)
  }

  /** Whether we reset this stream; `undefined` if it is not remembered, or is not over. */
  wasReset(id: number): boolean | undefined {
    const place = this.#places?.[(id >>> 1) & (kept - 1)] ?? 0
    if (place === 2 * id) return false
    return place === 2 * id + 1 ? true : undefined
  }
}

/**
 * Which call a piece of a stream belongs to. Pieces name it by its index; some providers write index 0
 * for all of several calls, whose ids tell them apart.
 */
export class CallIndexes {
  /** By the index that the provider writes: the call that was named last, and its own index. */
  readonly #calls = new Map<number, { id: string | undefined; readonly index: number }>()
  readonly #byId = new Map<string, number>()
  #next = 0

  /** `id`: of the piece, if it has one. */
  resolve(written: number, id: string | undefined): number {
    const open = this.#calls.get(written)
    if (open === undefined || (id && open.id !== undefined && open.id !== id)) {
      return this.#begin(written, id || undefined)
    }
    if (id && open.id === undefined) {
      open.id = id
      this.#byId.set(id, open.index)
    }
    return open.index
  }

  #begin(written: number, id: string | undefined): number {
    const known = id === undefined ? undefined : this.#byId.get(id)
    const index = known ?? Math.max(this.#next, this.#calls.has(written) ? 0 : written)
    this.#next = Math.max(this.#next, index + 1)
    this.#calls.set(written, { id, index })
    if (id !== undefined) this.#byId.set(id, index)
    return index
  }
}

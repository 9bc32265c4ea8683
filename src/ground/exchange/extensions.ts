/**
 * Values by name, as in a Map. There are few at a time, and they are cleared after each request, which would make a
 * Map allocate a table for the next one.
 */
export class Extensions {
  readonly #names: string[] = []
  readonly #values: unknown[] = []
  #size = 0

  get size(): number {
    return this.#size
  }

  get(name: string): unknown {
    const at = this.#indexOf(name)
    return at < 0 ? undefined : this.#values[at]
  }

  has(name: string): boolean {
    return this.#indexOf(name) >= 0
  }

  set(name: string, value: unknown): void {
    const found = this.#indexOf(name)
    const at = found < 0 ? this.#size++ : found
    this.#names[at] = name
    this.#values[at] = value
  }

  delete(name: string): void {
    const at = this.#indexOf(name)
    if (at < 0) return
    const last = --this.#size
    this.#names[at] = this.#names[last] ?? ''
    this.#values[at] = this.#values[last]
    this.#values[last] = undefined
  }

  clear(): void {
    while (this.#size > 0) this.#values[--this.#size] = undefined
  }

  *[Symbol.iterator](): Iterator<readonly [name: string, value: unknown]> {
    for (let at = 0; at < this.#size; at++) yield [this.#names[at] ?? '', this.#values[at]]
  }

  #indexOf(name: string): number {
    for (let at = 0; at < this.#size; at++) if (this.#names[at] === name) return at
    return -1
  }
}

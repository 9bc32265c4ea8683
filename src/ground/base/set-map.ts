const none: ReadonlySet<never> = new Set<never>()

/** Sets of values by key. A key is removed with its last value. */
export class SetMap<Key, Value> {
  readonly #sets = new Map<Key, Set<Value>>()

  get(key: Key): ReadonlySet<Value> {
    return this.#sets.get(key) ?? none
  }

  has(key: Key): boolean {
    return this.#sets.has(key)
  }

  keys(): Iterable<Key> {
    return this.#sets.keys()
  }

  add(key: Key, value: Value): void {
    const values = this.#sets.get(key)
    if (values === undefined) this.#sets.set(key, new Set([value]))
    else values.add(value)
  }

  delete(key: Key, value: Value): void {
    const values = this.#sets.get(key)
    if (values?.delete(value) === true && values.size === 0) this.#sets.delete(key)
  }
}

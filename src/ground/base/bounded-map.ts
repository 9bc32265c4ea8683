/** A Map with a maximum size: a new key takes the place of the oldest one. */
export class BoundedMap<Key, Value> extends Map<Key, Value> {
  readonly #maxSize: number

  constructor(maxSize: number) {
    super()
    this.#maxSize = maxSize
  }

  override set(key: Key, value: Value): this {
    if (this.size >= this.#maxSize && !this.has(key)) {
      for (const oldest of this.keys()) {
        this.delete(oldest)
        break
      }
    }
    return super.set(key, value)
  }
}

/** A bounded Map whose values are only valid for a time. */
export class ExpiringMap<Key, Value> {
  readonly #entries: BoundedMap<Key, { readonly value: Value; readonly until: number }>
  readonly #validMs: number

  constructor(maxSize: number, validMs: number) {
    this.#entries = new BoundedMap(maxSize)
    this.#validMs = validMs
  }

  /** Returns the value if it is still valid. */
  get(key: Key): Value | undefined {
    const found = this.#entries.get(key)
    return found !== undefined && found.until > performance.now() ? found.value : undefined
  }

  set(key: Key, value: Value): void {
    this.#entries.set(key, { value, until: performance.now() + this.#validMs })
  }
}

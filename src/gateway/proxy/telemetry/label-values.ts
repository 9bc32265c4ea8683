/** Limits the values of a label that clients can choose, because each value has series of its own. */

const maxLength = 128
/** Value for all further ones. */
export const otherValues = '_OTHER'

export class LabelValues {
  readonly #values = new Set<string>()
  readonly #most: number

  constructor(most: number) {
    this.#most = most
  }

  /** Returns the value, or `otherValues` if it is new and there are enough. */
  of(value: string): string {
    if (this.#values.has(value)) return value
    if (this.#values.size >= this.#most || value.length > maxLength) return otherValues
    this.#values.add(value)
    return value
  }

  has(value: string): boolean {
    return this.#values.has(value)
  }
}

/** Maximum number of values of a dimension of the identity. Users may be many. */
const maxIdentities = 500

/** The values of each dimension of the identity. */
export class IdentityValues {
  readonly #dimensions = new Map<string, LabelValues>()

  of(dimension: string, value: string): string {
    let values = this.#dimensions.get(dimension)
    if (values === undefined) {
      values = new LabelValues(maxIdentities)
      this.#dimensions.set(dimension, values)
    }
    return values.of(value)
  }
}

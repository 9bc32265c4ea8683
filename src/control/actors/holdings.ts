/** What holders have of a balance. */

/** What one holder got of a balance, and what became of it. Sums of this window. */
interface Holding {
  readonly granted: bigint
  charged: bigint
  returned: bigint
  /** Whether only requests under way use the rest. Holds until the next change. */
  isDrained: boolean
}

const noHolding: Holding = { granted: 0n, charged: 0n, returned: 0n, isDrained: false }

/** What a holder may still spend, as far as it has reported; 0 if it has spent more than it got. */
export function outstandingOf({ granted, charged, returned }: Holding): bigint {
  const left = granted - charged - returned
  return left > 0n ? left : 0n
}

/** What each holder is granted of a balance that begins. It never changes, and many balances share it. */
export class FirstGrants {
  readonly byHolder: ReadonlyMap<string, bigint>
  readonly total: bigint
  readonly #without = new Map<string, FirstGrants>()

  constructor(byHolder: ReadonlyMap<string, bigint>) {
    this.byHolder = byHolder
    let total = 0n
    for (const amount of byHolder.values()) total += amount
    this.total = total
  }

  /** The grants of all other holders; the same object every time. */
  without(holder: string): FirstGrants {
    if (!this.byHolder.has(holder)) return this
    const known = this.#without.get(holder)
    if (known !== undefined) return known
    const others = new FirstGrants(new Map([...this.byHolder].filter(([name]) => name !== holder)))
    this.#without.set(holder, others)
    return others
  }
}

export const noGrants = new FirstGrants(new Map())

/**
 * The holdings of one balance. Those that have not changed since the balance began are only in its first grants, so
 * that a hundred thousand balances do not have an entry for each of fifty proxies.
 */
export class Holdings {
  readonly first: FirstGrants
  /** The holdings that have changed, by holder. */
  readonly changed: ReadonlyMap<string, Holding>

  constructor(first: FirstGrants, changed: Iterable<readonly [string, Holding]> = []) {
    this.first = first
    this.changed = new Map(changed)
  }

  get(holder: string): Holding | undefined {
    const changed = this.changed.get(holder)
    if (changed !== undefined) return changed
    const granted = this.first.byHolder.get(holder)
    return granted === undefined ? undefined : { ...noHolding, granted }
  }

  *[Symbol.iterator](): Generator<readonly [string, Holding]> {
    for (const [holder, granted] of this.first.byHolder) {
      yield [holder, this.changed.get(holder) ?? { ...noHolding, granted }]
    }
    for (const entry of this.changed) if (!this.first.byHolder.has(entry[0])) yield entry
  }

  /** What all holders together may still spend. */
  get outstanding(): bigint {
    let sum = this.first.total
    for (const [holder, holding] of this.changed) {
      sum += outstandingOf(holding) - (this.first.byHolder.get(holder) ?? 0n)
    }
    return sum
  }

  /** Adds a charge in place, because copies would take more than half of the time of a fold. */
  charge(
    holder: string,
    of: {
      readonly charged: bigint
      readonly returned: bigint
      readonly drained: bigint | undefined
    },
  ): void {
    let holding = this.changed.get(holder)
    if (holding === undefined) {
      holding = this.get(holder) ?? { ...noHolding }
      ;(this.changed as Map<string, Holding>).set(holder, holding)
    }
    holding.charged += of.charged
    holding.returned += of.returned
    // A grant may have crossed the report.
    holding.isDrained = of.drained === holding.granted
  }

  withGrant(holder: string, amount: bigint): Holdings {
    const before = this.get(holder) ?? noHolding
    const holding = { ...before, granted: before.granted + amount, isDrained: false }
    return new Holdings(this.first, [...this.changed, [holder, holding]])
  }

  /** Nothing is outstanding to a holder that is released. */
  withRelease(holder: string): Holdings {
    const before = this.changed.get(holder)
    if (before === undefined) {
      const first = this.first.without(holder)
      return first === this.first ? this : new Holdings(first, this.changed)
    }
    const holding = { ...before, granted: before.charged + before.returned, isDrained: true }
    return new Holdings(this.first, [...this.changed, [holder, holding]])
  }
}

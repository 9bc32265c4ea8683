/** Compares recorded spend with what vendors say, by model and day. */
import type { BillLine } from './bills.ts'
import type { SpendEntry } from './entry.ts'
import { addTo, newSum, type SpendSum } from './sums.ts'

const compared = ['requests', 'inputTokens', 'outputTokens', 'cost'] as const
type Compared = (typeof compared)[number]

export interface SpendDifference {
  readonly provider: string
  readonly day: string
  /** Empty if the vendor counts all models together. */
  readonly model: string
  readonly what: Compared
  readonly recorded: bigint
  readonly billed: bigint
  /** Recorded requests whose cost is not known, if this is about costs. */
  readonly unknown: bigint
}

export interface SpendComparison {
  readonly differences: readonly SpendDifference[]
  /** Number of sums that were compared. */
  readonly compared: number
}

/** Differences of costs up to this are due to the rounding of the vendor: a millionth of a USD, in 10⁻¹² USD. */
const rounding = 1_000_000n

/** A sum of a vendor: of one model on one day, or of all models if the name is empty. */
interface Place {
  readonly provider: string
  readonly day: string
  readonly model: string
}

const keyOf = ({ provider, day, model }: Place): string => JSON.stringify([provider, day, model])

/** Stands for each single model, in contrast to all of them together. */
const anyModel = '*'

const groupOf = ({ model, ...place }: Place): string =>
  keyOf({ ...place, model: model === '' ? '' : anyModel })

/** Collects recorded requests, of which only those on the days of the bills are compared. */
export class BillComparison {
  readonly #places = new Map<string, Place>()
  readonly #bills = new Map<string, Partial<Record<Compared, bigint>>>()
  readonly #sums = new Map<string, SpendSum>()
  /** What the bills of a provider and a day count. */
  readonly #measures = new Map<string, Set<Compared>>()

  constructor(lines: readonly BillLine[]) {
    for (const line of lines) {
      const key = this.#keep(line)
      const bill = this.#bills.get(key) ?? {}
      this.#bills.set(key, bill)
      const measures = this.#measures.get(groupOf(line)) ?? new Set()
      this.#measures.set(groupOf(line), measures)
      for (const name of compared) {
        const count = line[name]
        if (count === undefined) continue
        bill[name] = (bill[name] ?? 0n) + count
        measures.add(name)
      }
    }
  }

  #keep({ provider, day, model }: Place): string {
    const place = { provider, day, model }
    const key = keyOf(place)
    this.#places.set(key, place)
    return key
  }

  add(entry: SpendEntry): void {
    const name = entry.model.toLowerCase()
    const day = entry.decision.time.slice(0, 10)
    for (const model of [name.slice(name.lastIndexOf('/') + 1), '']) {
      const place = { provider: entry.provider, day, model }
      if (!this.#measures.has(groupOf(place))) continue
      const key = this.#keep(place)
      const sum = this.#sums.get(key) ?? newSum()
      this.#sums.set(key, sum)
      addTo(sum, entry)
    }
  }

  /** A model that was recorded and that no bill has is a difference, too. */
  result(): SpendComparison {
    const all = [...this.#places].sort(([a], [b]) => (a < b ? -1 : 1))
    const found = all.flatMap(([key, place]) =>
      [...(this.#measures.get(groupOf(place)) ?? [])].map((what): SpendDifference => {
        const recorded = this.#sums.get(key) ?? newSum()
        const unknown = what === 'cost' ? recorded.unknown : 0n
        const billed = this.#bills.get(key)?.[what] ?? 0n
        return { ...place, what, recorded: recorded[what], billed, unknown }
      }),
    )
    return { differences: found.filter(isDifferent), compared: found.length }
  }
}

function isDifferent({ what, recorded, billed, unknown }: SpendDifference): boolean {
  const apart = recorded < billed ? billed - recorded : recorded - billed
  return unknown > 0n || apart > (what === 'cost' ? rounding : 0n)
}

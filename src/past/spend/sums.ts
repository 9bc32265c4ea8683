/** Adds up recorded spend by any dimensions. */
import { inputWithCache } from '../../engines/messages/chat.ts'
import type { Money } from '../../engines/messages/cost/money.ts'
import type { CacheHit, SpendEntry } from './entry.ts'

/** Counts are bigints, because a record may have any count. */
export interface SpendSum {
  requests: bigint
  inputTokens: bigint
  cacheReadTokens: bigint
  cacheWriteTokens: bigint
  outputTokens: bigint
  /** What is known of the cost. */
  cost: Money
  /** Requests whose cost is not known, so that it is not part of `cost`. */
  unknown: bigint
  /** Requests of which part of the usage has no price. */
  partial: bigint
  /** Requests whose usage the provider did not report as a whole. */
  estimated: bigint
  /** Requests that stored answers have served; they are not part of `requests`. */
  hits: bigint
  /** Sum of the known costs of these stored answers. */
  saved: Money
}

export const newSum = (): SpendSum => ({
  requests: 0n,
  inputTokens: 0n,
  cacheReadTokens: 0n,
  cacheWriteTokens: 0n,
  outputTokens: 0n,
  cost: 0n,
  unknown: 0n,
  partial: 0n,
  estimated: 0n,
  hits: 0n,
  saved: 0n,
})

export function addTo(sum: SpendSum, { usage, status, cost = 0n }: SpendEntry): void {
  sum.requests++
  sum.inputTokens += BigInt(inputWithCache(usage))
  sum.cacheReadTokens += BigInt(usage.cacheRead ?? 0)
  sum.cacheWriteTokens += BigInt(usage.cacheWrite ?? 0)
  sum.outputTokens += BigInt(usage.output)
  sum.cost += cost
  if (status !== 'exact') sum[status]++
}

/** A billed request or a hit, which has neither usage nor a status of its cost. */
type Recorded = Pick<SpendEntry, 'decision' | 'provider' | 'model'> &
  Partial<Pick<SpendEntry, 'usage' | 'status'>>

/** How a dimension is read; other names are dimensions of the identity. */
const dimensions: Readonly<Record<string, (entry: Recorded) => string | undefined>> = {
  provider: ({ provider }) => provider,
  model: ({ model }) => model,
  gateway: ({ decision }) => decision.route.gateway,
  route: ({ decision }) => decision.route.route?.split(' ').at(-1),
  backend: ({ decision }) => decision.route.backend,
  proxy: ({ decision }) => decision.proxy,
  service: ({ usage }) => usage?.service,
  status: ({ status = 'hit' }) => status,
  hour: ({ decision }) => `${decision.time.slice(0, 13)}:00Z`,
  day: ({ decision }) => decision.time.slice(0, 10),
  month: ({ decision }) => decision.time.slice(0, 7),
}

/** Returns the value of a request in a dimension; undefined if it has none. */
function valueIn(entry: Recorded, dimension: string): string | undefined {
  if (Object.hasOwn(dimensions, dimension)) return dimensions[dimension]?.(entry)
  const value = entry.decision.details[`identity.${dimension.replace(/^identity\./, '')}`]
  return value === undefined ? undefined : `${value}`
}

export interface SpendRow {
  /** One value for each dimension; empty if the requests have none. */
  readonly values: readonly string[]
  /** What was recorded. */
  readonly recorded: SpendSum
  /** What other prices or other models make of it; undefined if they are not asked for. */
  readonly whatIf: SpendSum | undefined
}

export class SpendTable {
  readonly dimensions: readonly string[]
  readonly #rows = new Map<string, SpendRow>()
  readonly total: SpendRow
  readonly #hasWhatIf: boolean

  constructor(dimensionNames: readonly string[], hasWhatIf: boolean) {
    this.dimensions = dimensionNames
    this.#hasWhatIf = hasWhatIf
    this.total = this.#newRow([])
  }

  #newRow(values: readonly string[]): SpendRow {
    return { values, recorded: newSum(), whatIf: this.#hasWhatIf ? newSum() : undefined }
  }

  add(entry: SpendEntry, whatIf: SpendEntry | undefined): void {
    for (const one of [this.#rowOf(entry), this.total]) {
      addTo(one.recorded, entry)
      if (whatIf !== undefined && one.whatIf !== undefined) addTo(one.whatIf, whatIf)
    }
  }

  addHit(hit: CacheHit): void {
    for (const { recorded } of [this.#rowOf(hit), this.total]) {
      recorded.hits++
      recorded.saved += hit.saved ?? 0n
    }
  }

  #rowOf(entry: Recorded): SpendRow {
    const values = this.dimensions.map((name) => valueIn(entry, name) ?? '')
    const key = JSON.stringify(values)
    let row = this.#rows.get(key)
    if (row === undefined) {
      row = this.#newRow(values)
      this.#rows.set(key, row)
    }
    return row
  }

  /** Times are in ascending order, and everything else by cost, highest first. */
  rows(): SpendRow[] {
    const isTime = ['hour', 'day', 'month'].includes(this.dimensions[0] ?? '')
    return [...this.#rows.values()].sort((a, b) => {
      const byTime = isTime ? compareTexts(a.values[0] ?? '', b.values[0] ?? '') : 0
      return byTime || compareCosts(b, a) || compareTexts(a.values.join(), b.values.join())
    })
  }
}

const compareTexts = (a: string, b: string): number => (a < b ? -1 : Number(a > b))

function compareCosts({ recorded: a }: SpendRow, { recorded: b }: SpendRow): number {
  return a.cost < b.cost ? -1 : Number(a.cost > b.cost)
}

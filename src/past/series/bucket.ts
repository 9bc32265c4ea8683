/** What was counted between two times, by group and series. */

/**
 * The groups of series. `all` has one series. A series of `key` is a dimension and a value of the identity, such as
 * `team=red`; one of `tool` is the backend and the tool; one of `guard` is the phase and the guard; one of `target` is
 * the backend and the MCP server that answered a message; one of `rule` is the policy, phase, position and kind of a
 * guard.
 */
export const seriesGroups = [
  'all',
  'route',
  'backend',
  'model',
  'key',
  'tool',
  'guard',
  'target',
  'rule',
] as const
export type SeriesGroup = (typeof seriesGroups)[number]

/**
 * What a block may have, in the order of files, so new ones are last: a group, or `presence`. Every bucket has a block
 * of `presence`, so that a time without requests differs from one of which nothing is known. Its only series has the
 * count `known`, the milliseconds that were counted, and `left` if the proxy was then shut down in order.
 */
export const storedGroups = [
  'all',
  'route',
  'backend',
  'model',
  'key',
  'tool',
  'guard',
  'target',
  'presence',
  'rule',
] as const
export type StoredGroup = (typeof storedGroups)[number]

/**
 * The counts of a series, by name: those of `countNames`, `le:SECONDS` for requests that took at most so long (but
 * longer than the next smaller bound), `clientErrors` for those with 4xx, `resets` for those whose connection to the
 * backend failed, `cause:REASON STATUS` for failed ones, and `verdict:ACTION` for guards. Series of `all` and `route`
 * also have `refused:FIELD of POLICY` for requests that a policy refused, `billed` for requests to models that the provider
 * bills, and `cost:BOUND MODEL` for those with a known cost (see `costBuckets`).
 */
export type Counts = Map<string, number>

export const refusedPrefix = 'refused:'
export const costPrefix = 'cost:'

/**
 * Cost is in USD; `unpriced` counts billed requests whose cost is not fully known. `hits` counts answers of the cache,
 * and `saved` is what they had cost, in USD.
 */
export const countNames = [
  'requests',
  'errors',
  'refused',
  'tokens',
  'inputTokens',
  'outputTokens',
  'cost',
  'unpriced',
  'toolCalls',
  'toolErrors',
  'hits',
  'saved',
] as const
export type CountName = (typeof countNames)[number]

export type SeriesOfGroup = Map<string, Counts>
export type Groups = Map<StoredGroup, SeriesOfGroup>

export interface Bucket {
  readonly startMs: number
  readonly endMs: number
  readonly groups: Groups
}

/** Name of the series that sums up those that have no separate series. */
export const otherName = '_OTHER'
/** Name of the series of requests without a route, or another label of the group. */
export const noRoute = 'none'
/** Maximum number of series of a group in one bucket. */
const maxSeries = 1_000
/** Maximum length of a name. Longer ones are counted under `otherName`. */
export const maxNameLength = 200

/** Adds to a count of a series, which is created if it does not exist. */
export function addCount(
  groups: Groups,
  group: StoredGroup,
  name: string,
  count: string,
  value: number,
): void {
  if (value === 0) return
  let series = groups.get(group)
  if (series === undefined) {
    series = new Map()
    groups.set(group, series)
  }
  const key = name.length > maxNameLength ? otherName : name
  let counts = series.get(key)
  if (counts === undefined) {
    counts = new Map()
    series.set(key, counts)
  }
  counts.set(count, (counts.get(count) ?? 0) + value)
}

/** Adds all counts of `more` to `sum`. */
function addCounts(sum: Counts, more: Counts): void {
  for (const [count, value] of more) sum.set(count, (sum.get(count) ?? 0) + value)
}

export function addGroups(sum: Groups, more: Groups): void {
  for (const [group, series] of more) {
    for (const [name, counts] of series) {
      for (const [count, value] of counts) addCount(sum, group, name, count, value)
    }
  }
}

/** What was counted between two sums. A count that has fallen began again at 0. */
export function differenceOf(now: Groups, before: Groups): Groups {
  const difference: Groups = new Map()
  for (const [group, series] of now) {
    const earlier = before.get(group)
    for (const [name, counts] of series) {
      const old = earlier?.get(name)
      for (const [count, value] of counts) {
        const past = old?.get(count) ?? 0
        addCount(difference, group, name, count, value < past ? value : value - past)
      }
    }
  }
  return difference
}

const sizeOf = (counts: Counts): number => counts.get('requests') ?? 0

/** Sums up all series of a group but the most active ones in the series `otherName`. */
export function limitSeries(series: SeriesOfGroup, most = maxSeries): SeriesOfGroup {
  if (series.size <= most) return series
  const ranked = [...series].sort(([, a], [, b]) => sizeOf(b) - sizeOf(a))
  const limited: SeriesOfGroup = new Map(ranked.slice(0, most - 1))
  const other: Counts = new Map(limited.get(otherName))
  for (const [, counts] of ranked.slice(most - 1)) addCounts(other, counts)
  limited.set(otherName, other)
  return limited
}

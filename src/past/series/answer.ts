/** Answers questions about series: sums and points of the most active series of a group. */
import type { BlockVisitor } from './block.ts'
import {
  addCount,
  type CountName,
  type Counts,
  countNames,
  type Groups,
  otherName,
  type SeriesGroup,
  type SeriesOfGroup,
} from './bucket.ts'
import { quantileOf } from './quantile.ts'
import { bucketMs, type SeriesReader } from './store.ts'

export interface SeriesQuestion {
  readonly by: SeriesGroup
  readonly fromMs: number
  readonly toMs: number
  /** Duration of a point. It is longer if so short ones are not stored so long. */
  readonly stepMs: number
  /** Number of series; all others are summed up. */
  readonly top: number
  readonly withPoints: boolean
}

/** Sums of a time. Latencies are undefined if nothing was measured. */
export interface SeriesSums extends Readonly<Record<CountName, number>> {
  readonly p50Ms?: number
  readonly p99Ms?: number
  /** Failed requests by reason and status, such as `UpstreamFailure 503`; most frequent first. */
  readonly causes: readonly NamedCount[]
  /** Decisions of guards by action; most frequent first. */
  readonly verdicts: readonly NamedCount[]
}

interface NamedCount {
  readonly name: string
  readonly count: number
}

export interface AnsweredSeries {
  /** Empty for the group `all`. */
  readonly name: string
  /** Whether it sums up several series: those after the first ones, and those that were not counted apart. */
  readonly isOther: boolean
  readonly sums: SeriesSums
  /** RFC 3339: end of the newest bucket with a request. Omitted if there is none, and for other series. */
  readonly lastRequest?: string
  /** One value for each step; null if nothing was measured. */
  readonly points?: SeriesPoints
}

type PointName = 'requests' | 'errors' | 'refused' | 'tokens' | 'cost' | 'toolCalls'
export type SeriesPoints = Readonly<
  Record<PointName | 'p50Ms' | 'p99Ms', readonly (number | null)[]>
> & {
  /** Decisions of guards by action; omitted if there are none. */
  readonly verdicts?: Readonly<Record<string, readonly number[]>>
}

export interface SeriesAnswer {
  readonly by: SeriesGroup
  /** RFC 3339. */
  readonly from: string
  readonly to: string
  readonly stepSeconds: number
  /** When the oldest bucket began; omitted if nothing is known. */
  readonly knownSince?: string
  readonly series: readonly AnsweredSeries[]
  /** Number of proxies whose series are added up; omitted if they are those of one proxy. */
  readonly proxies?: number
  /** Times for which the counts of a proxy are not known, so that sums are too small. */
  readonly missing?: readonly MissingSeries[]
}

interface MissingSeries {
  /** `namespace/gateway/name`. */
  readonly proxy: string
  /** RFC 3339. */
  readonly from: string
  readonly to: string
}

/** Maximum number of points. Steps are longer if there would be more. */
const maxPoints = 2_000

/** `open` is what was counted since the last stored bucket. */
export function answerSeries(
  store: SeriesReader,
  question: SeriesQuestion,
  open: Groups,
): SeriesAnswer {
  const { by, top, withPoints } = question
  const wanted = Math.max(question.stepMs, (question.toMs - question.fromMs) / maxPoints)
  const rounded = Math.ceil(wanted / bucketMs) * bucketMs
  const stepMs = store.stepFor(question.fromMs, niceStep(rounded))
  const fromMs = Math.floor(question.fromMs / stepMs) * stepMs
  const range = { fromMs, toMs: question.toMs, stepMs }
  const steps = Math.max(1, Math.ceil((question.toMs - fromMs) / stepMs))
  const { sums, lastMs } = sumsOf(store, by, range, open)
  const chosen = chooseSeries(sums, top)
  const points = withPoints ? pointsOf(store, by, range, steps, new Set(chosen), open) : undefined
  const series = chosen.map((name) => ({
    name,
    isOther: name === otherName,
    sums: sumsOfCounts(sums.get(name) ?? new Map()),
    ...lastRequestOf(lastMs.get(name)),
    ...(points && { points: pointLists(points.get(name) ?? []) }),
  }))
  const since = store.startMs
  return {
    by,
    from: new Date(fromMs).toISOString(),
    to: new Date(question.toMs).toISOString(),
    stepSeconds: stepMs / 1_000,
    ...(since !== undefined && { knownSince: new Date(since).toISOString() }),
    series,
  }
}

interface Range {
  readonly fromMs: number
  readonly toMs: number
  readonly stepMs: number
}

const niceSteps = [10, 30, 60, 300, 600, 1_800, 3_600, 10_800, 21_600, 86_400].map(
  (seconds) => 1_000 * seconds,
)

/** The next duration that consists of whole buckets of a longer period. */
const niceStep = (stepMs: number): number =>
  niceSteps.find((step) => step >= stepMs) ?? Math.ceil(stepMs / 86_400_000) * 86_400_000

const isNow = ({ toMs }: Range): boolean => toMs >= Date.now() - bucketMs

const lastRequestOf = (ms: number | undefined): Pick<AnsweredSeries, 'lastRequest'> =>
  ms === undefined ? {} : { lastRequest: new Date(ms).toISOString() }

/**
 * Returns the sums of each series, and the end of its newest bucket with a request. Series beyond the limit of a
 * bucket are in the series `otherName`.
 */
function sumsOf(store: SeriesReader, by: SeriesGroup, range: Range, open: Groups) {
  const sums: SeriesOfGroup = new Map()
  const lastMs = new Map<string, number>()
  let counts: Counts = new Map()
  let series = ''
  let blockEndMs = 0
  const visitor: BlockVisitor = {
    block: (_start, endMs, group) => {
      blockEndMs = endMs
      return group === by
    },
    series: (name) => {
      series = name
      counts = sums.get(name) ?? new Map()
      sums.set(name, counts)
    },
    count: (name, value) => {
      counts.set(name, (counts.get(name) ?? 0) + value)
      if (name === 'requests') lastMs.set(series, Math.max(blockEndMs, lastMs.get(series) ?? 0))
    },
  }
  store.read(range.fromMs, range.toMs, range.stepMs, visitor)
  if (isNow(range)) {
    addOpen(new Map([[by, sums]]), by, open)
    for (const [name, more] of open.get(by) ?? []) {
      if (more.has('requests')) lastMs.set(name, Math.min(range.toMs, Date.now()))
    }
  }
  // Other series are summed up, so they have no time of their own.
  lastMs.delete(otherName)
  return { sums, lastMs }
}

function addOpen(groups: Groups, by: SeriesGroup, open: Groups): void {
  for (const [name, counts] of open.get(by) ?? []) {
    for (const [count, value] of counts) addCount(groups, by, name, count, value)
  }
}

const weightOf = (counts: Counts): number =>
  (counts.get('requests') ?? 0) + (counts.get('tokens') ?? 0) / 1e6

/** Returns the names of the most active series, and sums up all others in `otherName`. */
function chooseSeries(sums: SeriesOfGroup, top: number): string[] {
  const ranked = [...sums]
    .filter(([name]) => name !== otherName)
    .sort(([nameA, a], [nameB, b]) => weightOf(b) - weightOf(a) || (nameA < nameB ? -1 : 1))
    .map(([name]) => name)
  const rest = ranked.splice(top)
  if (rest.length > 0) {
    const groups: Groups = new Map([['all', sums]])
    for (const name of rest) {
      const counts = sums.get(name) ?? new Map<string, number>()
      for (const [count, value] of counts) addCount(groups, 'all', otherName, count, value)
    }
  }
  return sums.has(otherName) ? [...ranked, otherName] : ranked
}

/** Returns the counts of each step for each chosen series. */
function pointsOf(
  store: SeriesReader,
  by: SeriesGroup,
  range: Range,
  steps: number,
  chosen: ReadonlySet<string>,
  open: Groups,
): Map<string, Counts[]> {
  const points = new Map<string, Counts[]>()
  let at = 0
  let counts: Counts = new Map()
  const select = (name: string) => {
    const key = chosen.has(name) ? name : otherName
    let list = points.get(key)
    if (list === undefined) {
      list = Array.from({ length: steps }, () => new Map<string, number>())
      points.set(key, list)
    }
    counts = list[Math.min(at, steps - 1)] ?? new Map()
  }
  const add = (name: string, value: number) =>
    void counts.set(name, (counts.get(name) ?? 0) + value)
  store.read(range.fromMs, range.toMs, range.stepMs, {
    block: (startMs, _end, group) => {
      at = Math.floor((startMs - range.fromMs) / range.stepMs)
      return group === by
    },
    series: select,
    count: add,
  })
  if (isNow(range)) {
    at = steps - 1
    for (const [name, more] of open.get(by) ?? []) {
      select(name)
      for (const [count, value] of more) add(count, value)
    }
  }
  return points
}

const bucketPrefix = 'le:'
/** A damaged file may name others. */
const maxBounds = 100
const verdictPrefix = 'verdict:'

function latencies(counts: Counts): Pick<SeriesSums, 'p50Ms' | 'p99Ms'> {
  const buckets: (readonly [bound: number, count: number])[] = []
  for (const [name, count] of counts) {
    if (name.startsWith(bucketPrefix)) buckets.push([boundOf(name), count])
  }
  if (buckets.length === 0) return {}
  buckets.sort(([one], [other]) => one - other)
  const [p50Ms, p99Ms] = [quantileOf(buckets, 0.5), quantileOf(buckets, 0.99)]
  return p50Ms === undefined || p99Ms === undefined ? {} : { p50Ms, p99Ms }
}

/** Computed once, because every step of every series needs each bound. */
const knownBounds = new Map<string, number>()

/** Returns the bound of a count such as `le:0.25` in ms. */
function boundOf(name: string): number {
  const known = knownBounds.get(name)
  if (known !== undefined) return known
  const bound = Number(name.slice(bucketPrefix.length)) * 1_000
  if (knownBounds.size < maxBounds) knownBounds.set(name, bound)
  return bound
}

const named = (counts: Counts, prefix: string): NamedCount[] =>
  [...counts]
    .filter(([name]) => name.startsWith(prefix))
    .map(([name, count]) => ({ name: name.slice(prefix.length), count }))
    .sort((a, b) => b.count - a.count)

function sumsOfCounts(counts: Counts): SeriesSums {
  const plain = Object.fromEntries(countNames.map((name) => [name, counts.get(name) ?? 0]))
  return {
    ...(plain as Record<CountName, number>),
    ...latencies(counts),
    causes: named(counts, 'cause:'),
    verdicts: named(counts, verdictPrefix),
  }
}

function pointLists(steps: readonly Counts[]): SeriesPoints {
  const measured = steps.map(latencies)
  const list = (name: CountName) => steps.map((counts) => counts.get(name) ?? 0)
  return {
    requests: list('requests'),
    errors: list('errors'),
    refused: list('refused'),
    tokens: list('tokens'),
    cost: list('cost'),
    toolCalls: list('toolCalls'),
    p50Ms: measured.map(({ p50Ms }) => p50Ms ?? null),
    p99Ms: measured.map(({ p99Ms }) => p99Ms ?? null),
    ...verdictPoints(steps),
  }
}

function verdictPoints(steps: readonly Counts[]): Pick<SeriesPoints, 'verdicts'> {
  const names = new Set<string>()
  for (const counts of steps) {
    for (const name of counts.keys()) if (name.startsWith(verdictPrefix)) names.add(name)
  }
  if (names.size === 0) return {}
  const listOf = (name: string) => steps.map((counts) => counts.get(name) ?? 0)
  const lists = [...names]
    .sort()
    .map((name) => [name.slice(verdictPrefix.length), listOf(name)] as const)
  return { verdicts: Object.fromEntries(lists) }
}

/**
 * What every file of `bench/` shares. A bench module default-exports a `Bench`: a function that
 * measures ourselves and our peers in turn and returns rows. `scripts/bench.mjs` runs each module in
 * a process of its own (with `--expose-gc`), judges the rows, prints them and writes the JSON.
 * Modules of `bench/` without a default export are parts of a bench.
 */
import { spawnSync } from 'node:child_process'
import { cpus, release, totalmem } from 'node:os'
import { join } from 'node:path'

/** The command line of this checkout. */
export const launcher = join(import.meta.dirname, '..', 'bin', 'sluice')

export interface BenchContext {
  /** `--quick`: smaller sizes and fewer rounds; for trying a bench, not for figures to quote. */
  readonly quick: boolean
  /** Interleaved rounds to take: 7, or 3 when quick. */
  readonly rounds: number
  /** Reports progress on standard error. */
  note(text: string): void
}

export type Bench = (context: BenchContext) => readonly Row[] | Promise<readonly Row[]>

/** What a row must keep: of its ratio where it has a peer, else of its median. */
export type Bound = { readonly atMost: number } | { readonly atLeast: number }

export interface Row {
  /** Dotted, stable, unique in its module: `proxy.get.nginx`. */
  readonly id: string
  /** `ns`, `µs`, `ms`, `MB`, `MB/s`, `events/s`: those of a rate (with `/s`) are better when larger. */
  readonly unit: string
  /** Our own figure, once a round. */
  readonly own: readonly number[]
  /** The peer's, once a round; empty if the peer is absent, which `note` explains. */
  readonly peer?: { readonly name: string; readonly samples: readonly number[] }
  /**
   * `cost`: ours over the peer's, for 'at most 1.25 times nginx'. `speedup`: how many times faster we
   * are, for 'at least 4 times JSON.parse'. Default: `cost`, `speedup` with an `atLeast` bound.
   */
  readonly as?: 'cost' | 'speedup'
  readonly bound?: Bound
  /** Is the bound of the median (`value`), though there is a peer? Default: of the ratio. */
  readonly boundOf?: 'ratio' | 'value'
  readonly note?: string
}

/** A row as the JSON document has it. */
export interface Result {
  readonly id: string
  /** Median of our own figure. */
  readonly value: number
  readonly unit: string
  readonly peer: string | null
  readonly ratio: number | null
  readonly n: number
  readonly p10: number
  readonly p90: number
  readonly bound: number | null
  /** 10th and 90th percentile of the rounds' ratios. */
  readonly ratioP10?: number
  readonly ratioP90?: number
  /** Null without a bound, without the peer, or if the peer's own spread is over 15 %. */
  readonly ok: boolean | null
  /** Does the bound hold the figure from above (`most`) or below (`least`)? */
  readonly at?: 'most' | 'least'
  readonly peerValue?: number
  /** (p90 - p10) / median of the peer. */
  readonly peerSpread?: number
  readonly note?: string
}

const noise = 0.15

/** Quantile by linear interpolation; NaN of nothing. */
export function quantile(samples: readonly number[], share: number): number {
  const sorted = [...samples].sort((a, b) => a - b)
  const at = share * (sorted.length - 1)
  const low = sorted[Math.floor(at)] ?? Number.NaN
  const high = sorted[Math.ceil(at)] ?? Number.NaN
  return low + (high - low) * (at - Math.floor(at))
}

export const median = (samples: readonly number[]): number => quantile(samples, 0.5)

/** (p90 - p10) / median. */
export const spreadOf = (samples: readonly number[]): number =>
  (quantile(samples, 0.9) - quantile(samples, 0.1)) / median(samples)

/**
 * Runs every candidate once for warming up (not counted), then all of them in turn, round by round;
 * gives each one's samples. A drift of the machine so meets all candidates alike.
 */
export async function interleave<Name extends string>(
  rounds: number,
  candidates: Readonly<Record<Name, () => number | Promise<number>>>,
): Promise<Record<Name, number[]>> {
  const entries = Object.entries(candidates) as [Name, () => number | Promise<number>][]
  const samples = Object.fromEntries(entries.map(([name]) => [name, []])) as unknown as Record<
    Name,
    number[]
  >
  for (const [, run] of entries) await run()
  for (let round = 0; round < rounds; round++) {
    for (const [name, run] of entries) samples[name].push(await run())
  }
  return samples
}

/** User and system time of this process that a synchronous piece of work takes, in nanoseconds. */
export function cpuNanoseconds(work: () => void): number {
  const before = process.cpuUsage()
  work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) * 1000
}

/** Wall-clock milliseconds of a piece of work. */
export async function milliseconds(work: () => unknown): Promise<number> {
  const begun = performance.now()
  await work()
  return performance.now() - begun
}

/** Four significant digits, which is more than a shared machine can measure. */
const rounded = (value: number): number => Number(value.toPrecision(4))

export function judge(row: Row): Result {
  const { id, unit, own, bound, note } = row
  const peer = row.peer?.samples.length ? row.peer : undefined
  const value = median(own)
  const ratios = peer === undefined ? [] : ratiosOf(row, peer.samples)
  const ratio = ratios.length === 0 ? undefined : median(ratios)
  const peerSpread = peer === undefined ? undefined : spreadOf(peer.samples)
  const isOfRatio = row.peer !== undefined && row.boundOf !== 'value'
  const isNoisy = isOfRatio && (peerSpread === undefined || peerSpread > noise)
  const figure = isOfRatio ? ratio : value
  return {
    id,
    value: rounded(value),
    unit,
    peer: row.peer?.name ?? null,
    ratio: ratio === undefined ? null : rounded(ratio),
    n: own.length,
    p10: rounded(quantile(own, 0.1)),
    p90: rounded(quantile(own, 0.9)),
    bound: bound === undefined ? null : limitOf(bound),
    ok: bound === undefined || figure === undefined || isNoisy ? null : keeps(figure, bound),
    ...(bound && { at: 'atMost' in bound ? 'most' : 'least' }),
    ...(ratios.length > 1 && {
      ratioP10: rounded(quantile(ratios, 0.1)),
      ratioP90: rounded(quantile(ratios, 0.9)),
    }),
    ...(peer && { peerValue: rounded(median(peer.samples)) }),
    ...(peerSpread !== undefined && { peerSpread: rounded(peerSpread) }),
    ...(note && { note }),
  }
}

/**
 * The ratio of every round, whose candidates ran right after each other: a machine that is slow for a
 * minute is so for both. Where the numbers of samples differ they are no pairs, and the medians are
 * compared.
 */
function ratiosOf(row: Row, peer: readonly number[]): readonly number[] {
  const { own } = row
  if (own.length !== peer.length) return [ratioOf(row, median(own), median(peer))]
  return own.map((value, round) => ratioOf(row, value, peer[round] ?? Number.NaN))
}

function ratioOf({ unit, as, bound }: Row, own: number, peer: number): number {
  const isSpeedup = as === undefined ? bound !== undefined && 'atLeast' in bound : as === 'speedup'
  if (!isSpeedup) return own / peer
  return unit.endsWith('/s') ? own / peer : peer / own
}

const limitOf = (bound: Bound): number => ('atMost' in bound ? bound.atMost : bound.atLeast)

const keeps = (figure: number, bound: Bound): boolean =>
  'atMost' in bound ? figure <= bound.atMost : figure >= bound.atLeast

/** One line of the printed table. */
export function describe(result: Result): string {
  const { id, value, unit, peer, peerValue, ratio, p10, p90, n, note } = result
  const spread = `[${p10} … ${p90}, n=${n}]`
  const noisy = result.peerSpread === undefined ? '' : `, ±${Math.round(result.peerSpread * 100)} %`
  const against =
    peer === null ? '' : ` against ${peer} ${peerValue ?? 'absent'}${peerValue ? noisy : ''}`
  const { ratioP10, ratioP90 } = result
  const rounds = ratioP10 === undefined ? '' : ` [${ratioP10} … ${ratioP90}]`
  const times = ratio === null ? '' : ` = ${ratio} ×${rounds}`
  const verdict = { true: 'ok', false: 'MISSED', null: 'inconclusive' }[`${result.ok}`]
  const sign = result.at === 'most' ? '≤' : '≥'
  const bound = result.bound === null ? '' : `  (${sign} ${result.bound}: ${verdict})`
  return `${id}: ${value} ${unit} ${spread}${against}${times}${bound}${note ? `  — ${note}` : ''}`
}

const signOf = ({ at }: Result): string => (at === 'least' ? '≥' : '≤')

/** All rows as one table of Markdown: figure, spread, peer, ratio, bound, verdict. */
export function tableOf(results: readonly Result[]): string {
  const verdicts = { true: 'kept', false: '**missed**', null: 'inconclusive' }
  const lines = results.map((result) => {
    const { id, value, unit, p10, p90, peer, peerValue, peerSpread, ratio, bound, ok } = result
    const spread = peerSpread === undefined ? '' : ` (±${Math.round(peerSpread * 100)} %)`
    const against = peer === null ? '' : `${peer}: ${peerValue ?? 'absent'}${spread}`
    const limit = bound === null ? '' : `${signOf(result)} ${bound}`
    const verdict = bound === null ? '' : verdicts[`${ok}`]
    const { ratioP10, ratioP90 } = result
    const times = ratioP10 === undefined ? `${ratio ?? ''}` : `${ratio} (${ratioP10} … ${ratioP90})`
    const cells = [`\`${id}\``, `${value} ${unit}`, `${p10} … ${p90}`, against, times, limit]
    return `| ${[...cells, verdict].join(' | ')} |`
  })
  const head = '| row | ours | p10 … p90 | peer | ratio | bound | |\n|---|---|---|---|---|---|---|'
  return [head, ...lines].join('\n')
}

export interface Machine {
  readonly cpu: string
  readonly cores: number
  readonly memoryGB: number
  readonly kernel: string
  readonly node: string
  readonly date: string
}

export function machine(): Machine {
  return {
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: cpus().length,
    memoryGB: Math.round(totalmem() / 2 ** 30),
    kernel: release(),
    node: process.version,
    date: new Date().toISOString().slice(0, 10),
  }
}

/** Can processes be pinned to cores here? */
export const canPin = (): boolean =>
  cpus().length > 1 && spawnSync('taskset', ['-c', '0', 'true']).status === 0

/** A command that runs on one core only, where `taskset` exists; else the command as it is. */
export function pinned(core: number, command: readonly string[]): readonly string[] {
  return canPin() ? ['taskset', '-c', `${core}`, ...command] : command
}

/** Keeps this process, with all its threads, on one core; says whether that worked. */
export function pinSelf(core: number): boolean {
  return canPin() && spawnSync('taskset', ['-acp', `${core}`, `${process.pid}`]).status === 0
}

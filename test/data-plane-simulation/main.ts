/** The command `npm run data-plane-simulation`. */
// The first imports: they replace the clocks and sockets before any other module reads them.
import '../virtual-time/globals.ts'
import './sockets.ts'
import { parseArgs } from 'node:util'
import { withRepetition } from '../virtual-time/repetition.ts'
import type { Outcome } from './simulation.ts'

export const usage = `npm run data-plane-simulation -- [--seed N | --seeds FROM..TO] [--minutes M]
                                 [--processes N] [--twice] [--trace] [--mutation NAME] [--until N]

  --seed N          runs one seed
  --seeds FROM..TO  runs these seeds (default 1..500); also a list, as 3,17,40
  --minutes M       stops after so many minutes, whatever seeds are left
  --processes N     divides the seeds between so many processes; needs --seeds FROM..TO. Without it, ranges
                    of more than 200 seeds use all cores, unless a mutation, a trace or --until is wanted
  --twice           runs each seed twice and compares the schedules
  --trace           prints the whole trace
  --mutation NAME   breaks the code on purpose (mutations.ts) and stops at the first seed that fails
  --until N         stops after N seeds that fail`

interface Options {
  readonly seeds: Iterable<number>
  readonly minutes: number
  readonly isTwice: boolean
  readonly isTraced: boolean
  /** Number of failures after which to stop. */
  readonly until: number
  /** Whether it is the only seed. */
  readonly isOnly: boolean
}

/** @throws Error if an option is invalid */
export function parseOptions(args: readonly string[]): Options | 'help' {
  const { values } = parseArgs({
    args: [...args],
    options: {
      seed: { type: 'string' },
      seeds: { type: 'string' },
      minutes: { type: 'string' },
      twice: { type: 'boolean', default: false },
      trace: { type: 'boolean', default: false },
      mutation: { type: 'string' },
      until: { type: 'string' },
      help: { type: 'boolean', short: 'h' },
    },
  })
  if (values.help === true) return 'help'
  const seeds = seedsOf(values.seed ?? values.seeds ?? '1..500')
  if (seeds === undefined || (values.seed !== undefined && !/^\d+$/.test(values.seed))) {
    throw new Error('--seed takes a whole number, --seeds two as FROM..TO or a list as 3,17,40')
  }
  const minutes = Number(values.minutes ?? Number.POSITIVE_INFINITY)
  if (!(minutes > 0)) throw new Error('--minutes takes a number above 0')
  const isBroken = values.mutation !== undefined
  const until = Number(values.until ?? (isBroken ? 1 : Number.POSITIVE_INFINITY))
  if (!(until > 0)) throw new Error('--until takes a number above 0')
  return {
    seeds,
    minutes,
    isTwice: values.twice === true,
    isTraced: values.trace === true,
    until,
    isOnly: values.seed !== undefined,
  }
}

/** Reads a seed, a list or a range of seeds. Returns undefined if it is none of them. */
function seedsOf(text: string): Iterable<number> | undefined {
  const [, from, to] = /^(\d+)\.\.(\d+)$/.exec(text) ?? []
  if (from !== undefined) return between(Number(from), Number(to))
  return /^\d+(,\d+)*$/.test(text) ? text.split(',').map(Number) : undefined
}

function* between(from: number, to: number): Generator<number> {
  for (let seed = from; seed <= to; seed++) yield seed
}

/** Lines of the trace that are printed for a failure. */
const traceLines = 60

const realSeconds = (): number => Number(process.hrtime.bigint()) / 1e9

/** Runs the seeds and prints what they find. Returns the exit code: 0 if every seed passes, otherwise 1. */
export async function runSeeds(options: Options, print: (text: string) => void): Promise<number> {
  const { simulate } = await import('./simulation.ts')
  const { seeds, minutes, isTwice, isTraced, until, isOnly } = options
  let [failures, exchanges, count] = [0, 0, 0]
  // Modules that take random numbers while they are loaded would change the first schedule.
  await simulate(0)
  const began = realSeconds()
  for (const seed of seeds) {
    if (realSeconds() - began >= minutes * 60) break
    let outcome = await simulate(seed)
    if (isTwice) outcome = withRepetition(outcome, await simulate(seed))
    count++
    exchanges += outcome.exchanges
    if (outcome.failure !== undefined) failures++
    report(outcome, isTraced, print, isOnly)
    if (failures >= until) return 1
    if (count % 10_000 === 0) print(`${count} seeds, ${exchanges} exchanges, ${failures} failed`)
  }
  const rate = (count / (realSeconds() - began)).toFixed(1)
  print(`${count} seeds, ${exchanges} exchanges, ${failures} failed; ${rate} seeds a second`)
  return failures === 0 ? 0 : 1
}

function report(
  { seed, failure, digest, trace, steps, exchanges }: Outcome,
  isTraced: boolean,
  print: (text: string) => void,
  isOnly: boolean,
): void {
  if (isTraced) for (const line of trace) print(line)
  if (failure === undefined) {
    if (isOnly)
      print(`seed ${seed} passes: ${steps} steps, ${exchanges} exchanges, schedule ${digest}`)
    return
  }
  if (!isTraced) for (const line of trace.slice(-traceLines)) print(line)
  print(`seed ${seed} FAILED: ${failure}`)
  print(`replay it with: npm run data-plane-simulation -- --seed ${seed} --trace`)
}

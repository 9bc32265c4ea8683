/** The command `npm run data-plane-simulation`. */
// The first imports: they replace the clocks and sockets before any other module reads them.
import '../virtual-time/globals.ts'
import './sockets.ts'
import { parseArgs } from 'node:util'
import { withRepetition } from '../virtual-time/repetition.ts'
import type { Outcome } from './simulation.ts'

export const usage = `npm run data-plane-simulation -- [--seed N | --seeds FROM..TO] [--minutes M]
                                 [--twice] [--trace] [--mutation NAME]

  --seed N          runs one seed
  --seeds FROM..TO  runs these seeds (default 1..500)
  --minutes M       stops after so many minutes, whatever seeds are left
  --twice           runs each seed twice and compares the schedules
  --trace           prints the whole trace
  --mutation NAME   breaks the code on purpose (mutations.ts) and stops at the first seed that fails`

interface Options {
  readonly from: number
  readonly to: number
  readonly minutes: number
  readonly isTwice: boolean
  readonly isTraced: boolean
  /** Whether to stop at the first failure. */
  readonly isBroken: boolean
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
      help: { type: 'boolean', short: 'h' },
    },
  })
  if (values.help === true) return 'help'
  const range = /^(\d+)\.\.(\d+)$/.exec(values.seeds ?? '1..500')
  const [from, to] = [values.seed ?? range?.[1], values.seed ?? range?.[2]].map(Number)
  const minutes = Number(values.minutes ?? Number.POSITIVE_INFINITY)
  if (![from, to].every((seed) => Number.isSafeInteger(seed) && Number(seed) >= 0)) {
    throw new Error('--seed takes a whole number, --seeds two as FROM..TO')
  }
  if (!(minutes > 0)) throw new Error('--minutes takes a number above 0')
  return {
    from: Number(from),
    to: Number(to),
    minutes,
    isTwice: values.twice === true,
    isTraced: values.trace === true,
    isBroken: values.mutation !== undefined,
  }
}

/** Lines of the trace that are printed for a failure. */
const traceLines = 60

const realSeconds = (): number => Number(process.hrtime.bigint()) / 1e9

/** Runs the seeds and prints what they find. Returns the exit code: 0 if every seed passes, otherwise 1. */
export async function runSeeds(options: Options, print: (text: string) => void): Promise<number> {
  const { simulate } = await import('./simulation.ts')
  const { from, to, minutes, isTwice, isTraced, isBroken } = options
  let [failures, exchanges, count] = [0, 0, 0]
  // Modules that take random numbers while they are loaded would change the first schedule.
  await simulate(0)
  const began = realSeconds()
  for (let seed = from; seed <= to && realSeconds() - began < minutes * 60; seed++) {
    let outcome = await simulate(seed)
    if (isTwice) outcome = withRepetition(outcome, await simulate(seed))
    count++
    exchanges += outcome.exchanges
    if (outcome.failure !== undefined) failures++
    report(outcome, isTraced, print, from === to)
    if (isBroken && failures > 0) return 1
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

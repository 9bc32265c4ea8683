/** The command `npm run ledger-simulation`. */
// The first import: it replaces the clocks before any other module reads them.
import '../virtual-time/globals.ts'
import { parseArgs } from 'node:util'
import { withRepetition } from '../virtual-time/repetition.ts'
import { type Outcome, simulate } from './simulation.ts'

export const usage = `npm run ledger-simulation -- [--seed N | --seeds FROM..TO] [--minutes M | --hours H]
                              [--processes N] [--twice] [--trace] [--mutation NAME]

  --seed N          runs one seed
  --seeds FROM..TO  runs these seeds (default 1..10)
  --minutes M       virtual minutes of each seed (default 5)
  --hours H         virtual hours of each seed
  --processes N     divides the seeds between so many processes; needs --seeds
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
      hours: { type: 'string' },
      twice: { type: 'boolean', default: false },
      trace: { type: 'boolean', default: false },
      mutation: { type: 'string' },
      help: { type: 'boolean', short: 'h' },
    },
  })
  if (values.help === true) return 'help'
  const range = /^(\d+)\.\.(\d+)$/.exec(values.seeds ?? '1..10')
  const [from, to] =
    values.seed === undefined ? [range?.[1], range?.[2]] : [values.seed, values.seed]
  const minutes =
    values.hours === undefined ? Number(values.minutes ?? 5) : Number(values.hours) * 60
  const seeds = [Number(from), Number(to)]
  if (!seeds.every((seed) => Number.isSafeInteger(seed) && seed >= 0)) {
    throw new Error('--seed takes a whole number, --seeds two as FROM..TO')
  }
  if (!(minutes > 0)) throw new Error('--minutes and --hours take a number above 0')
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

/** Runs the seeds and prints what they find. Returns the exit code: 0 if every seed passes, otherwise 1. */
export async function runSeeds(options: Options, print: (text: string) => void): Promise<number> {
  const { from, to, minutes, isTwice, isTraced, isBroken } = options
  let [failures, virtualMs, admitted] = [0, 0, 0]
  const before = process.cpuUsage()
  for (let seed = from; seed <= to; seed++) {
    let outcome = await simulate(seed, minutes)
    if (isTwice) outcome = withRepetition(outcome, await simulate(seed, minutes))
    virtualMs += outcome.virtualMs
    admitted += outcome.admitted
    if (outcome.failure !== undefined) failures++
    report(outcome, isTraced, print, from === to)
    if (isBroken && failures > 0) return 1
    const hours = (virtualMs / 3_600_000).toFixed(1)
    const count = seed - from + 1
    if (count % 100 === 0) print(`${count} seeds, ${hours} virtual hours, ${failures} failed`)
  }
  const { user, system } = process.cpuUsage(before)
  const count = to - from + 1
  const cpu = ((user + system) / 1e6 / count).toFixed(2)
  const hours = (virtualMs / 3_600_000).toFixed(1)
  print(
    `${count} seeds, ${hours} virtual hours, ${admitted} requests admitted, ${failures} failed; ${cpu} s of CPU a seed`,
  )
  return failures === 0 ? 0 : 1
}

function report(
  { seed, failure, digest, trace, steps, admitted, refused, released }: Outcome,
  isTraced: boolean,
  print: (text: string) => void,
  isOnly: boolean,
): void {
  if (isTraced) for (const line of trace) print(line)
  if (failure === undefined) {
    if (isOnly)
      print(
        `seed ${seed} passes: ${steps} steps, ${admitted} requests admitted, ${refused} refused, ${released} holders released, schedule ${digest}`,
      )
    return
  }
  if (!isTraced) for (const line of trace.slice(-traceLines)) print(line)
  print(`seed ${seed} FAILED: ${failure}`)
  print(`replay it with: npm run ledger-simulation -- --seed ${seed} --trace`)
}

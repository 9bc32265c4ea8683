/** What the commands of the simulations have in common: their options, and what they print. */
import { parseArgs } from 'node:util'
import { type Run, withRepetition } from './repetition.ts'

export interface Simulation<Outcome extends Run> {
  /** Name of the npm script. */
  readonly script: string
  readonly defaultSeeds: string
  /** Virtual minutes of each seed. If omitted, worlds end by themselves, and `--minutes` limits the real time. */
  readonly defaultMinutes?: number
  simulate(seed: number, minutes: number): Promise<Outcome>
  /** Called before the first seed. */
  prepare?(): Promise<unknown>
  /** Names of what the last line counts, with the number that an outcome adds. */
  readonly counts: Readonly<Record<string, (outcome: Outcome) => number>>
}

interface Options {
  readonly seeds: Iterable<number>
  /** Undefined: the default. */
  readonly minutes: number | undefined
  readonly isTwice: boolean
  readonly isTraced: boolean
  /** Number of failures after which to stop. */
  readonly until: number
  /** Whether it is the only seed. */
  readonly isOnly: boolean
}

/** What `runCommand` of scripts/run-command.mjs takes. */
export interface Command {
  readonly usage: string
  /** @throws Error if an option is invalid */
  parseOptions(args: readonly string[]): Options | 'help'
  /** Runs the seeds and prints what they find. Returns the exit code: 0 if every seed passes, otherwise 1. */
  run(options: Options, print: (text: string) => void): Promise<number>
}

export function commandOf<Outcome extends Run>(simulation: Simulation<Outcome>): Command {
  return {
    usage: usageOf(simulation),
    parseOptions: (args) => parseOptions(args, simulation.defaultSeeds),
    run: (options, print) => runSeeds(simulation, options, print),
  }
}

function usageOf<Outcome extends Run>({
  script,
  defaultSeeds,
  defaultMinutes,
}: Simulation<Outcome>): string {
  const minutes =
    defaultMinutes === undefined
      ? 'stops after so many minutes, whatever seeds are left'
      : `virtual minutes of each seed (default ${defaultMinutes}); also --hours H`
  return `npm run ${script} -- [--seed N | --seeds FROM..TO] [--minutes M] [--processes N]
         [--twice] [--trace] [--mutation NAME] [--until N]

  --seed N          runs one seed
  --seeds FROM..TO  runs these seeds (default ${defaultSeeds}); also a list, as 3,17,40
  --minutes M       ${minutes}
  --processes N     divides the seeds between so many processes; needs --seeds FROM..TO. Without it, ranges
                    of more than 200 seeds use all cores, unless a mutation, a trace or --until is wanted
  --twice           runs each seed twice and compares the schedules
  --trace           prints the whole trace
  --mutation NAME   breaks the code on purpose (mutations.ts) and stops at the first seed that fails
  --until N         stops after N seeds that fail`
}

function parseOptions(args: readonly string[], defaultSeeds: string): Options | 'help' {
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
      until: { type: 'string' },
      help: { type: 'boolean', short: 'h' },
    },
  })
  if (values.help === true) return 'help'
  const seeds = seedsOf(values.seed ?? values.seeds ?? defaultSeeds)
  if (seeds === undefined || (values.seed !== undefined && !/^\d+$/.test(values.seed))) {
    throw new Error('--seed takes a whole number, --seeds two as FROM..TO or a list as 3,17,40')
  }
  const minutes = values.hours === undefined ? values.minutes : Number(values.hours) * 60
  if (!(Number(minutes ?? 1) > 0)) throw new Error('--minutes and --hours take a number above 0')
  const isBroken = values.mutation !== undefined
  const until = Number(values.until ?? (isBroken ? 1 : Number.POSITIVE_INFINITY))
  if (!(until > 0)) throw new Error('--until takes a number above 0')
  return {
    seeds,
    minutes: minutes === undefined ? undefined : Number(minutes),
    isTwice: values.twice,
    isTraced: values.trace,
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

/** Seconds between two lines about seeds that pass. */
const progressSeconds = 30
/** Lines of the trace that are printed for a failure. */
const traceLines = 60

const realSeconds = (): number => Number(process.hrtime.bigint()) / 1e9

async function runSeeds<Outcome extends Run>(
  simulation: Simulation<Outcome>,
  { seeds, minutes, isTwice, isTraced, until, isOnly }: Options,
  print: (text: string) => void,
): Promise<number> {
  const { defaultMinutes, simulate, counts } = simulation
  const virtual = minutes ?? defaultMinutes ?? 0
  const limit =
    defaultMinutes === undefined ? (minutes ?? Number.POSITIVE_INFINITY) : Number.POSITIVE_INFINITY
  await simulation.prepare?.()
  const sums = Object.keys(counts).map((name) => ({ name, count: 0 }))
  let [failures, count] = [0, 0]
  const [began, before] = [realSeconds(), process.cpuUsage()]
  let printedAt = began
  const sum = () => [`${count} seeds`, ...sums.map(counted), `${failures} failed`].join(', ')
  for (const seed of seeds) {
    if (realSeconds() - began >= limit * 60) break
    let outcome = await simulate(seed, virtual)
    if (isTwice) outcome = withRepetition(outcome, await simulate(seed, virtual))
    count++
    for (const one of sums) one.count += counts[one.name]?.(outcome) ?? 0
    if (outcome.failure !== undefined) failures++
    report(simulation, seed, outcome, isTraced, isOnly, print)
    if (failures >= until) return 1
    if (realSeconds() - printedAt >= progressSeconds) {
      printedAt = realSeconds()
      print(`until seed ${seed}: ${sum()}`)
    }
  }
  const { user, system } = process.cpuUsage(before)
  const cpu = ((user + system) / 1e6 / count).toFixed(3)
  const rate = (count / (realSeconds() - began)).toFixed(1)
  print(`${sum()}; ${cpu} s of CPU a seed, ${rate} seeds a second`)
  return failures === 0 ? 0 : 1
}

const counted = ({ name, count }: { readonly name: string; readonly count: number }): string =>
  `${Number.isInteger(count) ? count : count.toFixed(1)} ${name}`

function report<Outcome extends Run>(
  { script, counts }: Simulation<Outcome>,
  seed: number,
  outcome: Outcome,
  isTraced: boolean,
  isOnly: boolean,
  print: (text: string) => void,
): void {
  const { failure, digest, trace } = outcome
  if (isTraced) for (const line of trace) print(line)
  if (failure === undefined) {
    if (!isOnly) return
    const all = Object.entries(counts).map(([name, of]) => counted({ name, count: of(outcome) }))
    print(`seed ${seed} passes: ${all.join(', ')}, schedule ${digest}`)
    return
  }
  if (!isTraced) for (const line of trace.slice(-traceLines)) print(line)
  print(`seed ${seed} FAILED: ${failure}`)
  print(`replay it with: npm run ${script} -- --seed ${seed} --trace`)
}

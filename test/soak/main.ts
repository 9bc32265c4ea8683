/** The command `npm run soak`: a gateway between real clients and real servers, with faults. */
import { setTimeout as after } from 'node:timers/promises'
import { Random } from '../fuzz/support/random.ts'
import { absenceOf, proxyNames } from '../support/real-proxies.ts'
import { TaggedClients } from '../support/tagged-client.ts'
import { type FaultScene, faultNames, faults } from './faults.ts'
import { Ledger, textOf } from './ledger.ts'
import type { Options } from './options.ts'
import { type Scene, startScene } from './scene.ts'
import { describeViolation, tableOf } from './summary.ts'
import type { Traffic, TrafficContext } from './traffic/context.ts'
import { files } from './traffic/files.ts'
import { abandoned, limited, pipelined, refused, slow, tagged, upgraded } from './traffic/http.ts'
import { completions, messages } from './traffic/models.ts'
import { tools } from './traffic/tools.ts'

/** How often each kind of traffic is chosen. */
const weights: readonly (readonly [Traffic, number])[] = [
  [tagged, 40],
  [pipelined, 10],
  [completions, 10],
  [messages, 8],
  [refused, 8],
  [tools, 6],
  [files, 6],
  [abandoned, 6],
  [limited, 3],
  [slow, 2],
  [upgraded, 2],
]
const kinds = weights.flatMap(([traffic, weight]) => Array<Traffic>(weight).fill(traffic))

const minuteMs = 60_000
/** Part of the time without faults, in which caches fill and code is compiled; at most ten minutes. */
const warmUpShare = 0.4
const longestWarmUpMs = 10 * minuteMs
/** Time between two faults. */
const restMs = 6_000
/**
 * How much the memory may grow after the warm-up, in percent, by the length of the run in minutes. In shorter runs,
 * heaps still grow to their usual size.
 */
const growthBounds = [
  { minutes: 60, percent: 1 },
  { minutes: 5, percent: 10 },
] as const

/** How long the gateway may take to log what was under way when the run ended. */
const lastLinesMs = 2_000

/** A line that reports a bug, except for the one about a worker that the kill switch has ended. */
const unexpectedBug = /^(?!.*worker \d+ died.*ended with code 1$).*\bbug\b.*$/m

/** Returns the command that repeats a run. */
function commandOf({ minutes, seed, connections, faults, programs }: Options): string {
  const isWhole = faults.length === faultNames.length
  const without = proxyNames.filter((name) => !programs.includes(name))
  return [
    `npm run soak -- --minutes ${minutes} --seed ${seed} --connections ${connections}`,
    ...(isWhole ? [] : [`--faults ${faults.join(',') || 'none'}`]),
    ...without.map((name) => `--without ${name}`),
  ].join(' ')
}

/** Runs the soak and prints what happened. Returns the exit code. */
export async function runSoak(options: Options, print: (text: string) => void): Promise<number> {
  const absences = options.programs.flatMap((name) => absenceOf(name) ?? [])
  if (absences.length > 0) {
    for (const absence of absences) print(`${absence}, or leave it out with --without`)
    return 2
  }
  const { minutes, seed, connections } = options
  const repeat = commandOf(options)
  print(`seed ${seed}, ${connections} connections, ${minutes} minutes`)
  const ledger = new Ledger()
  const stop = new AbortController()
  const interrupt = () => {
    ledger.isClosed = true
    stop.abort()
  }
  process.once('SIGINT', interrupt).once('SIGTERM', interrupt)
  void ledger.violated.then(interrupt)
  const scene = await startScene(ledger, options)
  try {
    const run = new Run(ledger, scene, options, stop.signal, print)
    await run.go()
    for (const line of run.summary()) print(line)
    if (ledger.violation !== undefined) {
      // Clients are gone, so that the gateway logs what was under way.
      await after(lastLinesMs)
      for (const line of describeViolation(ledger.violation, repeat, scene)) print(line)
      return 1
    }
    return run.isWhole ? 0 : 130
  } finally {
    await scene.close()
    process.off('SIGINT', interrupt).off('SIGTERM', interrupt)
  }
}

class Run {
  /** Whether the run was neither interrupted nor ended by a violation. */
  isWhole = false
  readonly #ledger: Ledger
  readonly #scene: Scene
  readonly #options: Options
  readonly #signal: AbortSignal
  readonly #print: (text: string) => void
  readonly #clients = new TaggedClients()
  readonly #faults: string[] = []
  readonly #began = performance.now()
  #memory = ''

  constructor(
    ledger: Ledger,
    scene: Scene,
    options: Options,
    signal: AbortSignal,
    print: (text: string) => void,
  ) {
    this.#ledger = ledger
    this.#scene = scene
    this.#options = options
    this.#signal = signal
    this.#print = print
  }

  async go(): Promise<void> {
    const { minutes, seed, connections } = this.#options
    const endAt = this.#began + minutes * minuteMs
    const warmUntil = this.#began + Math.min(longestWarmUpMs, (endAt - this.#began) * warmUpShare)
    const isOver = () => this.#signal.aborted || performance.now() >= endAt
    const watch = setInterval(() => this.#watch(), 1_000)
    try {
      const clients = Array.from({ length: connections }, (_, index) =>
        this.#send(new Random(seed * 1_000 + index), isOver),
      )
      await this.#strikeAll(warmUntil, isOver)
      await Promise.all(clients)
      this.isWhole = !this.#signal.aborted
      this.#clients.close()
      if (this.isWhole) await this.#checkEnd(warmUntil, endAt)
    } finally {
      clearInterval(watch)
      this.#clients.close()
    }
  }

  async #send(random: Random, isOver: () => boolean): Promise<void> {
    const { servers, accounts } = this.#scene
    const ledger = this.#ledger
    const context: TrafficContext = { ledger, accounts, servers, random, clients: this.#clients }
    while (!isOver()) {
      await random.pick(kinds)(context)
      // Leaves time to others on the machine.
      await after(random.below(12))
    }
  }

  #watch(): void {
    const { servers, accounts, resources, gateway } = this.#scene
    resources.sample()
    accounts.sweep()
    servers.forget()
    const all = [...servers.tagged.mixed, ...servers.secure.mixed]
    const [mixed] = all
    if (mixed !== undefined) {
      const invariant = mixed.includes('must be refused') ? 'protection' : 'isolation'
      const text = `an upstream receives a request that it must not: ${mixed}`
      this.#ledger.report({
        invariant,
        exchange: mixed,
        text,
        bytes: all.join('\n'),
      })
    }
    const bug = unexpectedBug.exec(gateway.stderr)
    if (bug !== null) {
      const text = 'the gateway reports a bug in itself'
      this.#ledger.report({ invariant: 'progress', exchange: 'log', text, bytes: bug[0] })
    }
  }

  async #strikeAll(from: number, isOver: () => boolean): Promise<void> {
    const { seed } = this.#options
    const chosen = faults.filter(({ name }) => this.#options.faults.includes(name))
    const scene: FaultScene = {
      ...this.#scene,
      ledger: this.#ledger,
      random: new Random(seed),
      change: (content) => this.#scene.gateway.write('changing.yaml', content),
    }
    const skipped = new Set<string>()
    await this.#pauseUntil(() => performance.now() >= from || isOver())
    for (let at = 0; chosen.length > 0 && !isOver(); at++) {
      const { name, strike } = chosen[at % chosen.length] as (typeof chosen)[number]
      if (skipped.has(name)) continue
      const reason = await strike(scene).catch((error: unknown) => this.#reportFault(name, error))
      if (reason !== undefined) {
        skipped.add(name)
        this.#print(`${name} is left out: ${reason}`)
        if (skipped.size === chosen.length) return
      } else this.#faults.push(name)
      const restUntil = performance.now() + restMs
      await this.#pauseUntil(() => performance.now() >= restUntil || isOver())
    }
  }

  #reportFault(name: string, error: unknown): undefined {
    const text = `the gateway does not recover from it: ${textOf(error)}`
    this.#ledger.report({ invariant: 'progress', exchange: name, text, bytes: '' })
  }

  async #pauseUntil(condition: () => boolean): Promise<void> {
    while (!condition()) await after(100)
  }

  async #checkEnd(warmUntil: number, endAt: number): Promise<void> {
    const { resources } = this.#scene
    const length = (endAt - warmUntil) / 4
    const before = resources.memoryBetween(warmUntil - length, warmUntil)
    const last = resources.memoryBetween(endAt - length, endAt)
    const growth = (100 * (last - before)) / before
    const bound = growthBounds.find(({ minutes }) => this.#options.minutes >= minutes)?.percent
    const judged = bound === undefined ? 'too short a run for a bound' : `bound ${bound} %`
    this.#memory = `memory ${before.toFixed(0)} MB after the warm-up, ${last.toFixed(0)} MB at the end (${growth.toFixed(1)} %, ${judged})`
    if (bound !== undefined && growth > bound) {
      this.#ledger.report({
        invariant: 'memory',
        exchange: 'the gateway',
        text: this.#memory,
        bytes: '',
      })
    }
    await this.#scene.servers.closeFronts()
    await resources.checkQuiet(this.#ledger)
  }

  summary(): string[] {
    const { accounts, resources } = this.#scene
    const seconds = (performance.now() - this.#began) / 1_000
    const struck = Map.groupBy(this.#faults, (name) => name)
    const all = [...struck].map(([name, times]) => `${name} ${times.length}`).join(', ')
    return [
      ...tableOf(this.#ledger, seconds),
      `faults: ${all === '' ? 'none' : all}`,
      `access log: ${accounts.lines} lines, ${accounts.matched} compared with what the client got and the vendor billed`,
      ...(this.#memory === '' ? [] : [this.#memory]),
      `descriptors at the end: ${resources.descriptors}`,
    ]
  }
}

/**
 * Virtual time, and the machines that live in it. Everything that happens is a step of one machine: a
 * timer, or the arrival of a message. Steps run one after the other, in the order of their times, and each
 * runs until its promises have settled. So one seed has exactly one schedule.
 */
import { createHash, type Hash } from 'node:crypto'
import { Random } from './random.ts'

interface Step {
  at: number
  order: number
  readonly machine: Machine
  /** The run of the machine that the step belongs to; a crash ends it. */
  readonly run: number
  readonly work: () => void
  isCancelled: boolean
  /** Whether it waits for the end of a suspension. */
  isPostponed: boolean
}

export type Cancel = () => void

/** A process with clocks of its own, on a machine of its own. */
export class Machine {
  readonly name: string
  /** Counts the starts; steps of earlier runs never happen. */
  run = 0
  isUp = true
  /** Until then nothing runs here, as if the process were suspended. */
  pausedUntil = 0
  /** Milliseconds by which the wall clock is ahead. */
  skewMs = 0
  /** How fast both clocks run. */
  rate = 1

  constructor(name: string) {
    this.name = name
  }
}

const realImmediate = globalThis.setImmediate
/** Runs what `process.nextTick` and promises have queued. It does nothing inside of a promise's callback. */
const { _tickCallback: settle } = process as unknown as { readonly _tickCallback: () => void }
/** Steps after which the process may do other work. */
const stepsAtOnce = 200
/** The wall clock at the start, 2026-01-01. */
const epochMs = 1_767_225_600_000
const traceLimit = 20_000

export class World {
  /** Milliseconds since the start. */
  now = 0
  /** Does what no machine does: the network, users, faults. It never fails. */
  readonly outside = new Machine('world')
  /** The machine whose step runs now. */
  current = this.outside
  /** Randomness of the code under test. */
  readonly inside: Random
  readonly seed: number
  readonly #heap: Step[] = []
  #order = 0
  #failure: Error | undefined
  readonly #hash: Hash = createHash('sha256')
  readonly #trace: string[] = []
  steps = 0

  constructor(seed: number) {
    this.seed = seed
    this.inside = new Random(seed, 'inside')
  }

  wallMs(machine = this.current): number {
    return Math.floor(epochMs + this.now * machine.rate + machine.skewMs)
  }

  monotonicMs(machine = this.current): number {
    return 1_000 + this.now * machine.rate
  }

  /** Runs `work` on a machine after a delay by the world's clock, unless that machine crashes before. */
  schedule(machine: Machine, delayMs: number, work: () => void): Cancel {
    const at = this.now + Math.max(0, delayMs)
    const step: Step = {
      at,
      order: ++this.#order,
      machine,
      run: machine.run,
      work,
      isCancelled: false,
      isPostponed: false,
    }
    this.#push(step)
    return () => {
      step.isCancelled = true
    }
  }

  /** Suspends a machine for a time, or until `resume`. */
  suspend(machine: Machine, forMs: number): void {
    machine.pausedUntil = Math.max(machine.pausedUntil, this.now + forMs)
  }

  /** Lets a suspended machine continue with the steps that it has missed, in their order. */
  resume(machine: Machine): void {
    if (machine.pausedUntil <= this.now) return
    machine.pausedUntil = this.now
    const steps = this.#heap.splice(0)
    for (const step of steps) {
      if (step.machine === machine && step.isPostponed) step.at = this.now
      this.#push(step)
    }
  }

  /** Runs until a time. Rejects with the first failure. */
  runUntil(endMs: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const runSteps = () => {
        try {
          for (let count = 0; count < stepsAtOnce; count++) {
            const step = this.#failure === undefined ? this.#next(endMs) : undefined
            if (step === undefined) {
              this.now = endMs
              this.current = this.outside
              if (this.#failure !== undefined) reject(this.#failure)
              else resolve()
              return
            }
            this.now = Math.max(this.now, step.at)
            this.current = step.machine
            this.steps++
            step.work()
            settle()
          }
          realImmediate(runSteps)
        } catch (error) {
          reject(error)
        }
      }
      realImmediate(runSteps)
    })
  }

  /** Adds a line to the trace, which the digest covers whole and of which the end is kept. */
  note(text: string): void {
    const line = `${(this.now / 1_000).toFixed(3).padStart(9)} ${this.current.name}: ${text}`
    this.#hash.update(`${line}\n`)
    this.#trace.push(line)
    if (this.#trace.length > 2 * traceLimit) this.#trace.splice(0, traceLimit)
  }

  /** Ends the run, since an invariant does not hold. */
  fail(text: string): void {
    this.note(`FAILED: ${text}`)
    this.#failure ??= new Error(text)
  }

  get trace(): readonly string[] {
    return this.#trace
  }

  get digest(): string {
    this.#hash.update(`${this.steps} steps`)
    return this.#hash.digest('hex').slice(0, 16)
  }

  #next(endMs: number): Step | undefined {
    for (;;) {
      const [first] = this.#heap
      if (first === undefined || first.at > endMs) return undefined
      this.#pop()
      const { machine, run, isCancelled } = first
      if (isCancelled || run !== machine.run || !machine.isUp) continue
      if (machine.pausedUntil <= first.at) return first
      first.at = machine.pausedUntil
      first.isPostponed = true
      first.order = ++this.#order
      this.#push(first)
    }
  }

  #push(step: Step): void {
    const heap = this.#heap
    let at = heap.length
    heap.push(step)
    while (at > 0) {
      const parent = (at - 1) >>> 1
      const above = heap[parent] as Step
      if (isBefore(above, step)) break
      heap[at] = above
      at = parent
    }
    heap[at] = step
  }

  #pop(): void {
    const heap = this.#heap
    const last = heap.pop() as Step
    if (heap.length === 0) return
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      if (child >= heap.length) break
      const right = heap[child + 1]
      if (right !== undefined && isBefore(right, heap[child] as Step)) child++
      const below = heap[child] as Step
      if (isBefore(last, below)) break
      heap[at] = below
      at = child
    }
    heap[at] = last
  }
}

const isBefore = (a: Step, b: Step) => a.at < b.at || (a.at === b.at && a.order < b.order)

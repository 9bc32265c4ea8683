/**
 * Replaces clocks, timers and randomness of this process by those of a world. Import it before the code
 * under test. The code under test uses the platform's functions and stays as it is in production; a clock
 * that is passed in would need an argument in every constructor, and one forgotten call would make runs
 * differ without any error.
 */
import crypto from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'
import timersPromises from 'node:timers/promises'
import vm from 'node:vm'
import zlib from 'node:zlib'
import { shareThreads } from './threads.ts'
import { type Cancel, World } from './world.ts'

/** Until the first simulation, modules that read a clock when they are loaded find this world. */
let world = new World(0)

const here = (): World => world

/** Makes clocks, timers and randomness of this process those of a world. */
export function inhabit(next: World): void {
  world = next
}

class VirtualTimer {
  #cancel: Cancel | undefined
  readonly #work: () => void
  readonly #delayMs: number
  readonly #repeats: boolean

  constructor(work: () => void, delayMs: unknown, repeats: boolean) {
    this.#work = work
    this.#delayMs = Math.max(1, Math.min(Number(delayMs) || 1, 2 ** 31 - 1))
    this.#repeats = repeats
    this.#start()
  }

  #start(): void {
    const { current } = here()
    this.#cancel = here().schedule(current, this.#delayMs / current.rate, () => {
      if (this.#repeats) this.#start()
      this.#work()
    })
  }

  stop(): void {
    this.#cancel?.()
  }

  refresh(): this {
    this.stop()
    this.#start()
    return this
  }

  ref(): this {
    return this
  }

  unref(): this {
    return this
  }

  hasRef(): boolean {
    return true
  }
}

type Work = (...values: unknown[]) => void

const stop = (timer: unknown) => {
  if (timer instanceof VirtualTimer) timer.stop()
}

const RealDate = globalThis.Date

class VirtualDate extends RealDate {
  constructor(...values: unknown[]) {
    if (values.length === 0) super(here().wallMs())
    else super(...(values as [number]))
  }

  static override now(): number {
    return here().wallMs()
  }
}

function wait(delayMs = 1, value?: unknown, options: { signal?: AbortSignal } = {}) {
  const { signal } = options
  return new Promise((resolve, reject) => {
    const abort = () => {
      timer.stop()
      reject(Object.assign(new Error('The operation was aborted'), { name: 'AbortError' }))
    }
    const timer = new VirtualTimer(
      () => {
        signal?.removeEventListener('abort', abort)
        resolve(value)
      },
      delayMs,
      false,
    )
    if (signal?.aborted) abort()
    else signal?.addEventListener('abort', abort, { once: true })
  })
}

function timeoutSignal(delayMs: number): AbortSignal {
  const controller = new AbortController()
  const late = () => controller.abort(new DOMException('The operation timed out', 'TimeoutError'))
  new VirtualTimer(late, delayMs, false)
  return controller.signal
}

function uuid(): string {
  const hex = here().inside.hex(30)
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(12, 15)}-8${hex.slice(15, 18)}-${hex.slice(18)}`
}

Object.assign(globalThis, {
  Date: VirtualDate,
  setTimeout: (work: Work, delayMs?: number, ...values: unknown[]) =>
    new VirtualTimer(() => work(...values), delayMs, false),
  setInterval: (work: Work, delayMs?: number, ...values: unknown[]) =>
    new VirtualTimer(() => work(...values), delayMs, true),
  setImmediate: (work: Work, ...values: unknown[]) => {
    here().schedule(here().current, 0, () => work(...values))
  },
  clearTimeout: stop,
  clearInterval: stop,
})
Object.assign(performance, { now: () => here().monotonicMs() })
// A step of a world is what a tick of the event loop is in production.
const uvMetricsInfo = {
  get loopCount() {
    return here().steps
  },
}
Object.defineProperty(performance, 'nodeTiming', { value: { uvMetricsInfo } })
Object.assign(Math, { random: () => here().inside.next() })
Object.assign(AbortSignal, { timeout: timeoutSignal })
Object.assign(timersPromises, {
  setTimeout: wait,
  setImmediate: (value?: unknown) => new Promise((resolve) => setImmediate(() => resolve(value))),
})
Object.assign(crypto, {
  randomUUID: uuid,
  randomBytes: (size: number) => Buffer.from(here().inside.hex(2 * size), 'hex'),
})
// Results of other threads would arrive at a time that no seed decides.
type Done = (error: null, result: Buffer) => void
const inThisThread =
  <Options>(work: (bytes: Uint8Array, options: Options) => Buffer) =>
  (bytes: Uint8Array, options: Options, done: Done) =>
    queueMicrotask(() => done(null, work(bytes, options)))
Object.assign(zlib, {
  zstdCompress: inThisThread(zlib.zstdCompressSync),
  zstdDecompress: inThisThread(zlib.zstdDecompressSync),
})
// Replicas collect their garbage when they are idle, and hours of idleness pass in a second.
Object.assign(vm, { runInNewContext: () => undefined })
syncBuiltinESMExports()
shareThreads(here)
// Most errors of a simulation are expected, and their stacks take a large part of its time.
Error.stackTraceLimit = 0

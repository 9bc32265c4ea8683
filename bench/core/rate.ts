/**
 * Claim: a check of a shared rate bucket in the core costs at most a third of the same algorithm in
 * JavaScript on a BigInt64Array with Atomics, a quarter with two threads, and two threads admit exactly
 * what the bucket holds.
 * Both are asked for one unit at a time of one bucket; half of the checks find it empty.
 */
import { once } from 'node:events'
import { isMainThread, parentPort, threadId, Worker, workerData } from 'node:worker_threads'
import { createRateLimiter, createRateMemory } from '../../src/engines/core/rate.ts'
import { type BenchContext, interleave, type Row } from '../harness.ts'

const checks = 2_000_000
const capacity = 1_000_000
const limit = { rate: 1, unit: 'Minutes', burst: capacity - 1 } as const
const interval = 60_000_000_000n
const tolerance = interval * BigInt(capacity)

/** The peer: the same bucket in JavaScript, asked in the same way. */
class AtomicsBucket {
  readonly #instant: BigInt64Array
  wait = 0
  remaining = 0
  reset = 0

  constructor(memory: SharedArrayBuffer) {
    this.#instant = new BigInt64Array(memory)
  }

  take(amount: number, now: number): boolean {
    const at = BigInt(Math.floor(now * 1e6))
    const cost = BigInt(amount) * interval
    for (;;) {
      const old = Atomics.load(this.#instant, 0)
      const used = (old > at ? old : at) + cost - at
      if (used > tolerance) return this.#result(used - cost, Number(used - tolerance) / 1e6, false)
      const seen = Atomics.compareExchange(this.#instant, 0, old, at + used)
      if (seen === old) return this.#result(used, 0, true)
    }
  }

  #result(used: bigint, wait: number, isAdmitted: boolean): boolean {
    this.wait = wait
    this.remaining = Number((tolerance - used) / interval)
    this.reset = Number(used) / 1e6
    return isAdmitted
  }
}

interface Asked {
  take(amount: number, now: number): boolean
}

type Kind = 'core' | 'atomics'

interface Run {
  /** Nanoseconds a check. */
  readonly cost: number
  readonly admitted: number
}

const makeMemory = { core: () => createRateMemory(), atomics: () => new SharedArrayBuffer(8) }

/** As in a worker of a proxy: one limiter, many limits. */
function makeBuckets(kind: Kind, memory: unknown): (id: number) => Asked {
  if (kind === 'atomics') return () => new AtomicsBucket(memory as SharedArrayBuffer)
  const limiter = createRateLimiter({ shared: memory as WebAssembly.Memory })
  return (id) => limiter.limit(id, limit)
}

/** The clock moves on once in 64 checks, as it does in a turn of the event loop. */
function check(bucket: Asked): number {
  let admitted = 0
  for (let n = 0; n < checks; n++) if (bucket.take(1, 1000 + (n >> 6) / 1e6)) admitted++
  return admitted
}

function expectExact(kind: Kind, admitted: number): void {
  // Far less than a unit comes back meanwhile.
  if (admitted !== capacity) throw new Error(`${kind} admitted ${admitted} of ${capacity}`)
}

/** Runs the checks of this thread: nanoseconds of its CPU time, and what was admitted. */
function measure(bucket: Asked): Run {
  const begun = process.threadCpuUsage()
  const admitted = check(bucket)
  const { user, system } = process.threadCpuUsage(begun)
  return { cost: ((user + system) * 1000) / checks, admitted }
}

let round = 0
const sharedBuckets = makeBuckets('core', makeMemory.core())

function alone(kind: Kind): number {
  const bucket = kind === 'core' ? sharedBuckets(++round) : makeBuckets(kind, makeMemory[kind]())(1)
  const { cost, admitted } = measure(bucket)
  expectExact(kind, admitted)
  return cost
}

/** Two threads at once: nanoseconds a check in the slower one. */
async function together(kind: Kind): Promise<number> {
  const memory = makeMemory[kind]()
  const start = new SharedArrayBuffer(4)
  const workers = [0, 1].map(
    () => new Worker(new URL(import.meta.url), { workerData: { kind, memory, start } }),
  )
  const reports = await Promise.all(workers.map((worker) => once(worker, 'message')))
  const results = reports.map(([report]) => report as Run)
  expectExact(
    kind,
    results.reduce((total, { admitted }) => total + admitted, 0),
  )
  return Math.max(...results.map(({ cost }) => cost))
}

function work({ kind, memory, start }: { kind: Kind; memory: unknown; start: SharedArrayBuffer }) {
  // Compiled by the time that it counts.
  const buckets = makeBuckets(kind, memory)
  check(kind === 'core' ? buckets(2 + threadId) : makeBuckets(kind, makeMemory.atomics())(1))
  const bucket = buckets(1)
  const ready = new Int32Array(start)
  Atomics.add(ready, 0, 1)
  while (Atomics.load(ready, 0) < 2);
  parentPort?.postMessage(measure(bucket))
}

if (!isMainThread) work(workerData)

export default async function rate({ rounds }: BenchContext): Promise<Row[]> {
  const samples = await interleave(rounds, {
    core: () => alone('core'),
    atomics: () => alone('atomics'),
    coreTogether: () => together('core'),
    atomicsTogether: () => together('atomics'),
  })
  return [
    {
      id: 'core.rate.one-thread',
      unit: 'ns',
      own: samples.core,
      peer: { name: 'js-atomics', samples: samples.atomics },
      bound: { atLeast: 3 },
    },
    {
      id: 'core.rate.two-threads',
      unit: 'ns',
      own: samples.coreTogether,
      peer: { name: 'js-atomics', samples: samples.atomicsTogether },
      bound: { atLeast: 4 },
      note: 'CPU time of a thread for a check, two threads on one bucket',
    },
  ]
}

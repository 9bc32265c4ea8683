/**
 * Claim: a check of a shared rate bucket in the core costs at most a third of the same algorithm in
 * JavaScript on a BigInt64Array with Atomics, and two threads admit exactly what the bucket holds.
 * Both are asked for one unit at a time of one bucket; half of the checks find it empty.
 */
import { once } from 'node:events'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { createRateLimiter, createRateMemory } from '../../src/core/rate.ts'
import { type BenchContext, cpuNanoseconds, interleave, type Row } from '../harness.ts'

const checks = 2_000_000
const capacity = 1_000_000
const limit = { rate: 1, unit: 'Minutes', burst: capacity - 1 } as const
const interval = 60_000_000_000n
const tolerance = interval * BigInt(capacity)

/** The peer: the same bucket in JavaScript. */
function takeWithAtomics(bucket: BigInt64Array, now: bigint): boolean {
  for (;;) {
    const old = Atomics.load(bucket, 0)
    const next = (old > now ? old : now) + interval
    if (next - now > tolerance) return false
    if (Atomics.compareExchange(bucket, 0, old, next) === old) return true
  }
}

/** Nanoseconds a check. */
function throughCore(memory: WebAssembly.Memory): { cost: number; admitted: number } {
  const buckets = createRateLimiter({ shared: memory }).limit(1, limit)
  let admitted = 0
  const spent = cpuNanoseconds(() => {
    for (let n = 0; n < checks; n++) if (buckets.take(1, 1000)) admitted++
  })
  return { cost: spent / checks, admitted }
}

function throughAtomics(): number {
  const bucket = new BigInt64Array(new SharedArrayBuffer(8))
  let admitted = 0
  // The time comes as a number, once a turn of the event loop, and is a BigInt for all checks of it.
  const spent = cpuNanoseconds(() => {
    for (let n = 0; n < checks; n++) if (takeWithAtomics(bucket, 1_000_000_000n)) admitted++
  })
  if (admitted !== capacity) throw new Error(`the peer admitted ${admitted}`)
  return spent / checks
}

function alone(): number {
  const { cost, admitted } = throughCore(createRateMemory())
  if (admitted !== capacity) throw new Error(`one thread was admitted ${admitted}`)
  return cost
}

/** Two threads at once: nanoseconds of CPU a check. Throws unless they admit exactly the capacity. */
async function together(): Promise<number> {
  const memory = createRateMemory()
  const workers = [0, 1].map(() => new Worker(new URL(import.meta.url), { workerData: memory }))
  const reports = await Promise.all(workers.map((worker) => once(worker, 'message')))
  const results = reports.map(([report]) => report as { cost: number; admitted: number })
  const admitted = results.reduce((total, result) => total + result.admitted, 0)
  if (admitted !== capacity) throw new Error(`two threads were admitted ${admitted}`)
  return Math.max(...results.map(({ cost }) => cost))
}

if (!isMainThread) {
  parentPort?.postMessage(throughCore(workerData as WebAssembly.Memory))
}

export default async function rate({ rounds }: BenchContext): Promise<Row[]> {
  const samples = await interleave(rounds, {
    core: alone,
    atomics: throughAtomics,
    threads: together,
  })
  return [
    {
      id: 'core.rate.atomics',
      unit: 'ns',
      own: samples.core,
      peer: { name: 'js-atomics', samples: samples.atomics },
      bound: { atLeast: 3 },
    },
    {
      id: 'core.rate.two-threads',
      unit: 'ns',
      own: samples.threads,
      note: 'user and system time of the process for a check, while two threads contend',
    },
  ]
}

import { once } from 'node:events'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { afterEach, describe, expect, it } from 'vitest'
import {
  createRateLimiter,
  createRateMemory,
  type RateLimit,
  type RateLimiter,
  rateClock,
} from '../../../src/engines/core/rate.ts'

interface Report {
  readonly admitted: readonly number[]
  readonly tries: number
}

const running = new Set<Worker>()
afterEach(async () => {
  for (const worker of running) await worker.terminate()
  running.clear()
})

/** Lets two threads take one unit at a time while `meanwhile` runs; what each was admitted. */
async function hammer(
  limit: RateLimit,
  keys: readonly (string | undefined)[],
  meanwhile: (limiter: RateLimiter) => Promise<void>,
): Promise<{ reports: Report[]; elapsed: number }> {
  const memory = createRateMemory({ keys: 16 })
  const control = new Int32Array(new SharedArrayBuffer(8))
  const workerData = { memory, limit, keys, control }
  const workers = [0, 1].map(
    () => new Worker(join(import.meta.dirname, 'hammer.ts'), { workerData }),
  )
  for (const worker of workers) running.add(worker)
  const reports = workers.map(async (worker) => {
    const [report] = await once(worker, 'message')
    return report as Report
  })
  for (let ready = 0; ready < 2; ready = Atomics.load(control, 0)) {
    await Atomics.waitAsync(control, 0, ready).value
  }
  const begun = rateClock()
  Atomics.store(control, 1, 1)
  Atomics.notify(control, 1)
  await meanwhile(createRateLimiter({ shared: memory }))
  Atomics.store(control, 1, 2)
  const done = await Promise.all(reports)
  return { reports: done, elapsed: rateClock() - begun }
}

const sum = (numbers: readonly number[]) => numbers.reduce((total, each) => total + each, 0)

/** Turns of the event loop, until the bucket has been found empty often enough. */
async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve))
}

describe('two threads that share a rate bucket', () => {
  it('admit exactly the capacity while nothing is refilled', async () => {
    // One unit comes back in 3.6 s: the threads take 50,000 long before that, or a few more.
    const limit = { rate: 1000, unit: 'Hours', burst: 49_000 } as const
    const { reports, elapsed } = await hammer(limit, [undefined], async (limiter) => {
      const buckets = limiter.limit(1, limit)
      await until(() => !buckets.peek(1, rateClock()))
    })
    const admitted = sum(reports.map((report) => report.admitted[0] ?? 0))
    expect(admitted).toBeGreaterThanOrEqual(50_000)
    expect(admitted).toBeLessThanOrEqual(50_000 + elapsed / 3600)
    // Both took part, or nothing was shown.
    for (const report of reports) expect(report.tries).toBeGreaterThan(0)
  })

  it('never admit more than the capacity and the elapsed time allow, if the bucket refills fast', async () => {
    const limit = { rate: 50_000, unit: 'Seconds', burst: 0 } as const
    const { reports, elapsed } = await hammer(limit, [undefined], async (limiter) => {
      const buckets = limiter.limit(1, limit)
      let refused = 0
      await until(() => (buckets.peek(25_000, rateClock()) ? refused : ++refused) > 100)
    })
    const admitted = sum(reports.map((report) => report.admitted[0] ?? 0))
    expect(admitted).toBeGreaterThan(25_000)
    expect(admitted).toBeLessThanOrEqual(50_000 + 50 * elapsed)
  })

  it('admit exactly the capacity of each key while the table is resized repeatedly', async () => {
    const keys = Array.from({ length: 60 }, (_, n) => (n === 0 ? undefined : `client ${n}`))
    const limit = { rate: 1, unit: 'Hours', burst: 2999 } as const
    const { reports } = await hammer(limit, keys, async (limiter) => {
      const buckets = limiter.limit(1, limit)
      for (let size = 128; size < 4096; size += 256) {
        limiter.resize(size, rateClock())
        await new Promise((resolve) => setImmediate(resolve))
      }
      await until(() => keys.every((key) => !buckets.peek(1, rateClock(), key)))
    })
    const totals = keys.map((_, index) => sum(reports.map((each) => each.admitted[index] ?? 0)))
    expect(totals).toEqual(keys.map(() => 3000))
  })

  it('never hold two buckets for one key while keys are added and removed continuously', async () => {
    // A bucket of one unit is full a second after it was emptied. By then a reaper whose clock is as
    // far ahead as it may be forgets it, while both threads are about to make it again.
    const keys = Array.from({ length: 20_000 }, (_, n) => `client ${n}`)
    const limit = { rate: 1, unit: 'Seconds' } as const
    let reaped = 0
    const { reports, elapsed } = await hammer(limit, keys, async (limiter) => {
      limiter.resize(keys.length, rateClock())
      await until(() => {
        reaped += limiter.reap(rateClock() + 995)
        return reaped > 2 * keys.length
      })
    })
    const totals = keys.map((_, index) => sum(reports.map((each) => each.admitted[index] ?? 0)))
    for (const total of totals) expect(total).toBeLessThanOrEqual(1 + elapsed / 1000)
    expect(sum(totals)).toBeGreaterThan(2 * keys.length)
  })
})

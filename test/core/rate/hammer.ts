// A worker thread of the tests that takes from shared buckets until it is stopped.
import { parentPort, workerData } from 'node:worker_threads'
import { createRateLimiter, type RateLimit, rateClock } from '../../../src/engines/core/rate.ts'

const { memory, limit, keys, control } = workerData as {
  memory: WebAssembly.Memory
  limit: RateLimit
  keys: readonly (string | undefined)[]
  /** [threads that are ready, 1 to go and 2 to stop] */
  control: Int32Array
}

const limiter = createRateLimiter({ shared: memory })
const buckets = limiter.limit(1, limit)
const admitted = keys.map(() => 0)
let tries = 0
Atomics.add(control, 0, 1)
Atomics.notify(control, 0)
Atomics.wait(control, 1, 0)
while (Atomics.load(control, 1) === 1) {
  for (const [index, key] of keys.entries()) {
    tries++
    if (buckets.take(1, rateClock(), key)) admitted[index] = (admitted[index] ?? 0) + 1
  }
}
parentPort?.postMessage({ admitted, tries })

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import * as abi from '../../../src/engines/core/abi.ts'
import { CoreInstance } from '../../../src/engines/core/instance.ts'
import { instantiateSharedRate, loadSharedRate } from '../../../src/engines/core/load.ts'
import {
  createRateLimiter,
  createRateMemory,
  type RateBuckets,
  rateClock,
} from '../../../src/engines/core/rate.ts'

interface Step {
  readonly do: 'take' | 'peek' | 'charge'
  readonly amount: number
  readonly at: number
  readonly is?: boolean
  readonly remaining?: number
  readonly wait?: number | 'never'
  readonly reset?: number
}

interface RateCase {
  readonly title: string
  readonly rate: number
  readonly unit: number
  readonly burst: number
  readonly steps: readonly Step[]
}

const root = join(import.meta.dirname, '..', '..', '..')
const read = (path: string) => JSON.parse(readFileSync(path, 'utf8'))
const cases: RateCase[] = read(join(import.meta.dirname, 'cases.json')).cases
const units = { 1000: 'Seconds', 60000: 'Minutes', 3600000: 'Hours' } as const
const second = { rate: 10, unit: 'Seconds' } as const

const limiters = {
  'in one thread': () => createRateLimiter(),
  'in shared memory': () => createRateLimiter({ shared: createRateMemory() }),
}

function run(buckets: RateBuckets, step: Step, key: string | undefined): void {
  const told = `${step.do} ${step.amount} at ${step.at}`
  const answer =
    step.do === 'charge'
      ? buckets.charge(step.amount, step.at, key)
      : buckets[step.do](step.amount, step.at, key)
  expect(answer, told).toBe(step.is)
  const seen = { remaining: buckets.remaining, reset: buckets.reset, wait: buckets.wait }
  if (step.remaining !== undefined) expect(seen.remaining, told).toBe(step.remaining)
  if (step.reset !== undefined) expect(seen.reset, told).toBeCloseTo(step.reset, 4)
  if (step.wait === 'never') expect(seen.wait, told).toBe(Number.POSITIVE_INFINITY)
  else if (step.wait !== undefined) expect(seen.wait, told).toBeCloseTo(step.wait, 4)
}

for (const [place, make] of Object.entries(limiters)) {
  describe(`rate buckets ${place}`, () => {
    it.each(cases)('$title', ({ rate, unit, burst, steps }) => {
      const limiter = make()
      const limit = { rate, burst, unit: units[unit as keyof typeof units] }
      for (const key of [undefined, 'a', 'b'.repeat(100)]) {
        const buckets = limiter.limit(1, limit)
        for (const step of steps) run(buckets, step, key)
      }
    })

    it('are separate for each limit id and for each key, which differ in any byte', () => {
      const limiter = make()
      const keys = ['', 'a', 'b', 'a\0', 'é', 'a'.repeat(48), 'a'.repeat(49), 'a'.repeat(50)]
      for (const id of [0, 1, -1, 2 ** 31 - 1]) {
        const buckets = limiter.limit(id, { rate: 1, unit: 'Hours' })
        for (const key of keys) expect(buckets.take(1, 0, key), key).toBe(true)
        for (const key of keys) expect(buckets.take(1, 0, key), key).toBe(false)
        expect(buckets.take(1, 0), 'no key is the empty key').toBe(false)
      }
      expect(limiter.count()).toBe(4 * keys.length)
    })

    it('do not confuse a long key with another key that equals its digest', () => {
      const buckets = make().limit(1, { rate: 1, unit: 'Hours' })
      const digest = new Uint8Array(33).fill(7)
      digest[0] = 0xff
      expect([buckets.take(1, 0, digest), buckets.take(1, 0, digest)]).toEqual([true, false])
      expect(buckets.take(1, 0, 'x'.repeat(60))).toBe(true)
    })

    it('are removed once they are full again, while those in debt stay', () => {
      const limiter = make()
      const buckets = limiter.limit(1, second)
      for (let n = 0; n < 100; n++) buckets.take(5, 0, `key ${n}`)
      buckets.charge(100, 0, 'in debt')
      expect(limiter.count()).toBe(101)
      expect(limiter.reap(1499)).toBe(0)
      expect(limiter.reap(1500)).toBe(100)
      expect(limiter.count()).toBe(1)
      expect([buckets.peek(1, 2000, 'in debt'), buckets.peek(10, 2000, 'key 1')]).toEqual([
        false,
        true,
      ])
    })

    it('are evicted automatically, so that any number of keys can follow each other', () => {
      const limiter = createRateLimiter({ keys: 16 })
      const buckets = limiter.limit(1, second)
      for (let n = 0; n < 5000; n++) {
        if (!buckets.take(1, n * 100, `client ${n}`)) throw new Error(`client ${n} was refused`)
      }
      expect(limiter.fullCount).toBe(0)
    })

    it('refuse a key if the table is full, and count the refusal', () => {
      const limiter = createRateLimiter({ keys: 16 })
      const buckets = limiter.limit(1, second)
      const admitted = Array.from({ length: 40 }, (_, n) => buckets.take(1, 0, `client ${n}`))
      expect(admitted.filter(Boolean).length).toBe(32)
      expect(limiter.fullCount).toBe(8)
      expect(buckets.wait).toBe(100)
      limiter.resize(1, 0)
      expect(buckets.take(1, 0, 'client 39')).toBe(false)
      limiter.resize(64, 0)
      expect(buckets.take(1, 0, 'client 39')).toBe(true)
      expect(buckets.take(10, 0, 'client 0')).toBe(false)
    })

    it('keep their state if the table grows or their limit changes', () => {
      const limiter = make()
      const buckets = limiter.limit(1, { rate: 60, unit: 'Minutes' })
      for (const key of [undefined, 'a']) buckets.take(40, 0, key)
      limiter.resize(100_000, 0)
      for (const key of [undefined, 'a']) {
        expect(buckets.take(21, 0, key)).toBe(false)
        expect(buckets.remaining).toBe(20)
        expect(buckets.take(1, 0, key)).toBe(true)
      }
      const hourly = { rate: 100, unit: 'Hours' } as const
      expect(limiter.change(1, { rate: 60, unit: 'Minutes' }, hourly, 0)).toBe(2)
      const changed = limiter.limit(1, hourly)
      expect([changed.take(1, 0), changed.remaining]).toEqual([true, 58])
      expect([changed.take(1, 0, 'a'), changed.remaining]).toEqual([true, 58])
    })

    it('reject invalid amounts, times and limits', () => {
      const limiter = make()
      const buckets = limiter.limit(1, second)
      for (const amount of [-1, Number.NaN, Number.POSITIVE_INFINITY]) {
        expect(() => buckets.take(amount, 0)).toThrow('ERROR_ARGUMENT')
        expect(() => buckets.peek(amount, 0)).toThrow('ERROR_ARGUMENT')
      }
      for (const now of [-1, Number.NaN, 1e300]) {
        expect(() => buckets.take(1, now)).toThrow('ERROR_ARGUMENT')
        expect(() => buckets.charge(1, now, 'a')).toThrow('ERROR_ARGUMENT')
      }
      for (const rate of [0, -1, Number.NaN]) {
        expect(() => limiter.limit(1, { rate, unit: 'Seconds' })).toThrow(RangeError)
      }
      expect(() => createRateLimiter({ keys: 0 })).toThrow(RangeError)
      expect(() => createRateLimiter({ keyBytes: 8 })).toThrow(RangeError)
      expect(buckets.take(1, 0)).toBe(true)
    })
  })
}

describe('the rate limiter', () => {
  it('keeps the state of shared buckets after a trap', () => {
    const limiter = createRateLimiter({ shared: createRateMemory() })
    const buckets = limiter.limit(1, second)
    buckets.take(10, 0)
    const { owner } = limiter
    const trap = () => {
      throw new WebAssembly.RuntimeError('unreachable')
    }
    expect(() => limiter.demand('a test', trap)).toThrow('the core trapped in a test')
    expect([limiter.trapCount, limiter.owner === owner]).toEqual([1, false])
    expect([buckets.take(1, 0), buckets.take(1, 100)]).toEqual([false, true])
  })

  it('continues once the lock of a dead worker is released', () => {
    const memory = createRateMemory({ keys: 16 })
    const limiter = createRateLimiter({ shared: memory })
    const buckets = limiter.limit(1, second)
    const { table } = limiter.host
    // Groups begin at +64; the first word of one is its lock.
    const lock = new Int32Array(memory.buffer, table + 64, 1)
    Atomics.store(lock, 0, 77)
    expect(() => buckets.take(1, 0, 'a')).toThrow('RATE_BUSY')
    limiter.release(78)
    expect(Atomics.load(lock, 0)).toBe(77)
    limiter.release(77)
    expect(buckets.take(1, 0, 'a')).toBe(true)
  })

  it('completes a resize that the lock of a dead worker blocked, without losing a bucket', () => {
    const memory = createRateMemory({ keys: 64 })
    const limiter = createRateLimiter({ shared: memory })
    const buckets = limiter.limit(1, second)
    const keys = Array.from({ length: 60 }, (_, n) => `client ${n}`)
    for (const key of keys) buckets.take(10, 0, key)
    const { table, exports } = limiter.host
    const groupBytes = (exports.rate_size(2, 48) - 64) / 2
    // The lock of the last of four groups.
    const lock = new Int32Array(memory.buffer, table + 64 + 3 * groupBytes, 1)
    Atomics.store(lock, 0, 77)
    expect(() => limiter.resize(1000, 0)).toThrow('RATE_BUSY')
    limiter.release(77)
    const early = keys.map((key) => buckets.take(1, 0, key))
    limiter.resize(1000, 0)
    expect(limiter.host.table).not.toBe(table)
    const late = keys.map((key) => buckets.take(1, 0, key))
    expect([...early, ...late]).toEqual([...keys, ...keys].map(() => false))
    expect(limiter.count()).toBe(60)
  })

  it('rejects shared memory that createRateMemory did not make', () => {
    const shared = new WebAssembly.Memory({ initial: 1, maximum: 2, shared: true })
    expect(() => createRateLimiter({ shared })).toThrow(TypeError)
  })

  it('throws ERROR_MEMORY if shared memory cannot grow', () => {
    expect(() => createRateMemory({ keys: 100_000, maximumPages: 2 })).toThrow('ERROR_MEMORY')
  })

  it('reads a clock that never goes back', () => {
    let last = rateClock()
    for (let n = 0; n < 1000; n++) {
      const now = rateClock()
      expect(now).toBeGreaterThanOrEqual(last)
      last = now
    }
  })
})

describe('core-rate-shared.wasm', () => {
  const { rateShared } = read(join(root, 'assembly/core.abi.json'))
  const memory = new WebAssembly.Memory({ initial: 1, maximum: 4, shared: true })

  it('imports its memory and nothing else', () => {
    const imports = [{ module: 'env', name: 'memory', kind: 'memory' }]
    expect(WebAssembly.Module.imports(loadSharedRate())).toMatchObject(imports)
    expect(rateShared.imports).toMatchObject(imports)
    expect(WebAssembly.Module.imports(loadSharedRate())).toHaveLength(1)
  })

  it('exports exactly the functions that core.abi.json lists', () => {
    const exported = WebAssembly.Module.exports(loadSharedRate())
    expect(exported.map(({ kind, name }) => `${kind} ${name}`).sort()).toEqual(
      rateShared.exports.map((name: string) => `function ${name}`).sort(),
    )
  })

  it('writes nothing to memory when it is instantiated', () => {
    const before = new Uint8Array(memory.buffer).fill(0xa5)
    const { abi_version, features } = instantiateSharedRate(memory)
    expect([abi_version(), features()]).toEqual([abi.ABI_VERSION, abi.FEATURE_RATE])
    expect(before.every((byte) => byte === 0xa5)).toBe(true)
  })

  it.each([
    ['core.wasm', () => new CoreInstance(), abi.ERROR_ARGUMENT],
    // Another thread may have grown the memory during the call.
    ['core-rate-shared.wasm', () => ({ exports: instantiateSharedRate(memory) }), abi.RATE_BUSY],
  ] as const)('refuses tables, keys and records outside its memory: %s', (_, make, outside) => {
    const { exports } = make()
    const size = 65536 * 4
    const wrong = [
      exports.rate_size(3, 48),
      exports.rate_size(1, -1),
      exports.rate_size(1, 1025),
      exports.rate_format(size, 1, 48, 64),
      exports.rate_format(8, 1, 48, 64),
      exports.rate_take(0, 1, 0, 0, 1, 1, 1, 0, 0),
      exports.rate_take(4096, 1, 0, 0, 1, 1, 1, 0, 0),
      exports.rate_take_at(-8, 1, 1, 1, 1, 0, 0),
      exports.rate_take_at(4097, 1, 1, 1, 1, 0, 0),
      exports.rate_cell(4096, 1, 0),
      exports.rate_count(4096),
      exports.rate_move(4096, 8192, 0),
      exports.rate_owner(0),
    ]
    expect(wrong).toEqual(wrong.map(() => abi.ERROR_ARGUMENT))
    expect(exports.rate_take(-16, 1, 0, 0, 1, 1, 1, 0, 0)).toBe(outside)
  })

  it('waits for a table in memory that another thread has just grown', () => {
    const memory = new WebAssembly.Memory({ initial: 1, maximum: 4, shared: true })
    const exports = instantiateSharedRate(memory)
    const words = new Int32Array(memory.buffer)
    const [secret, old, key] = [64, 128, 60_000]
    expect(exports.rate_format(old, 1, 48, secret)).toBe(0)
    const take = (length: number) => exports.rate_take(old, 1, key, length, 1000, 5, 1, 1, 0)
    expect(take(4)).toBe(1)
    // What a call sees that began before the other thread grew the memory: a table beyond its end.
    const next = 65536
    words[(old + 32) >> 2] = next
    expect([take(4), take(8)]).toEqual([1, abi.RATE_BUSY])
    words[(old + 36) >> 2] = 1
    expect([take(4), exports.rate_cell(old, 1, 1)]).toEqual([abi.RATE_BUSY, abi.RATE_BUSY])
    words[(old + 36) >> 2] = 0
    memory.grow(1)
    expect(exports.rate_format(next, 1, 48, secret)).toBe(0)
    expect([take(4), take(8), exports.rate_count(old), exports.rate_count(next)]).toEqual([
      1, 1, 0, 2,
    ])
  })
})

import { describe, expect, it } from 'vitest'
import {
  createRateLimiter,
  createRateMemory,
  type RateUnit,
} from '../../../src/engines/core/rate.ts'
import fc from '../../support/fast-check.ts'
import { ModelBucket } from './model.ts'

const units: Record<RateUnit, number> = {
  Seconds: 1000,
  Minutes: 60_000,
  Hours: 3_600_000,
  Days: 86_400_000,
  Months: 2_592_000_000,
}

const limit = fc.record({
  rate: fc.oneof(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1, max: 3_000_000 })),
  unit: fc.constantFrom<RateUnit>('Seconds', 'Minutes', 'Hours'),
  burst: fc.oneof(fc.integer({ min: 0, max: 30 }), fc.integer({ min: 0, max: 100_000 })),
})

const step = fc.record({
  // Milliseconds since the step before; a clock of another thread may lie a little behind.
  pause: fc.oneof(
    fc.constantFrom(0, 0, 1, 7, 333, 1000),
    fc.integer({ min: -50, max: 5000 }),
    fc.integer({ min: 0, max: 3_600_000 }),
  ),
  key: fc.constantFrom(undefined, 'a', 'b', 'c'.repeat(60)),
  action: fc.constantFrom('take', 'take', 'take', 'peek', 'charge', 'refund', 'resize', 'reap'),
  // A share of the capacity, so that small and large buckets both run out.
  share: fc.constantFrom(0, 0.01, 0.2, 0.5, 1, 1.5),
})

const rateOf = fc.tuple(limit, fc.array(step, { minLength: 1, maxLength: 60 }))

function agree(shared: boolean) {
  return fc.property(rateOf, ([{ rate, unit, burst }, steps]) => {
    const limiter = createRateLimiter(shared ? { shared: createRateMemory({ keys: 16 }) } : {})
    const buckets = limiter.limit(3, { rate, unit, burst })
    const models = new Map<string, ModelBucket>()
    let now = 1_000_000
    for (const [at, { pause, key, action, share }] of steps.entries()) {
      now += pause
      const name = key ?? ''
      const model = models.get(name) ?? new ModelBucket(rate, units[unit], rate + burst)
      models.set(name, model)
      const ticks = BigInt(now) * 1_000_000n
      const amount = Math.ceil((rate + burst) * share)
      if (action === 'resize') limiter.resize(32, now)
      else if (action === 'reap') limiter.reap(now)
      else if (action === 'charge' || action === 'refund') {
        buckets[action](amount, now, key)
        model.charge(action === 'charge' ? amount : -amount, ticks)
        expect(buckets.remaining, `step ${at}`).toBe(model.remaining(ticks))
      } else {
        expect(buckets[action](amount, now, key), `step ${at}`).toBe(model[action](amount, ticks))
        expect(buckets.remaining, `step ${at}`).toBe(model.remaining(ticks))
      }
    }
  })
}

describe('rate buckets', () => {
  it('match a model with exact integers, in one thread', () => {
    fc.assert(agree(false), { numRuns: 300, seed: 20263 })
  })

  it('match a model with exact integers, in shared memory', () => {
    fc.assert(agree(true), { numRuns: 150, seed: 20264 })
  })

  it('never admit more than the capacity and the elapsed time allow, for random amounts', () => {
    const demands = fc.array(fc.tuple(fc.nat(40), fc.nat(50)), { minLength: 1, maxLength: 300 })
    fc.assert(
      fc.property(limit, demands, ({ rate, unit, burst }, steps) => {
        const buckets = createRateLimiter({ keys: 16 }).limit(1, { rate, unit, burst })
        let now = 5000
        let admitted = 0n
        for (const [amount, pause] of steps) {
          now += pause
          if (buckets.take(amount, now)) admitted += BigInt(amount)
          const capacity = BigInt(rate + burst)
          // admitted <= capacity + rate * elapsed / unit, without a division.
          const allowed = capacity * BigInt(units[unit]) + BigInt(rate) * BigInt(now - 5000)
          if (admitted * BigInt(units[unit]) > allowed) throw new Error(`${admitted} at ${now}`)
        }
      }),
      { numRuns: 300, seed: 20265 },
    )
  })
})

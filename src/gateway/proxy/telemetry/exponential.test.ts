import { describe, expect, it } from 'vitest'
import { addExponential, ExponentialCounter, exponentialSince } from './exponential.ts'

const countsOf = (...values: number[]) => {
  const counter = new ExponentialCounter()
  for (const value of values) counter.record(value)
  return counter.snapshot()
}

/** The bucket that the definition gives, computed with logarithms. */
const bucketOf = (value: number, scale: number) => Math.ceil(Math.log2(value) * 2 ** scale) - 1

describe('exponential buckets', () => {
  it('have an upper bound that belongs to them', () => {
    expect(countsOf(1)).toEqual({ scale: 3, zeros: 0, offset: -1, counts: [1] })
    expect(countsOf(1.0000001)).toEqual({ scale: 3, zeros: 0, offset: 0, counts: [1] })
    expect(countsOf(2, 2.1)).toEqual({ scale: 3, zeros: 0, offset: 7, counts: [1, 1] })
    expect(countsOf(0.0625)).toEqual({ scale: 3, zeros: 0, offset: -33, counts: [1] })
  })

  it('are those of the definition for values of all sizes', () => {
    for (let value = 0.00007; value < 90; value *= 1.003) {
      expect(countsOf(value).offset).toBe(bucketOf(value, 3))
    }
  })

  it('count zero, negative and unusable values as zeros', () => {
    expect(countsOf(0, -1, Number.NaN, 2 ** -200)).toEqual({
      scale: 3,
      zeros: 4,
      offset: 0,
      counts: [],
    })
  })

  it('are at most 160, with a lower scale for a wider range, and no value is lost', () => {
    const values = Array.from({ length: 400 }, (_, at) => 2 ** ((at % 200) - 100))
    const { scale, offset, counts } = countsOf(...values)
    expect(counts.length).toBeLessThanOrEqual(160)
    expect(scale).toBeLessThan(3)
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(400)
    expect(offset).toBe(bucketOf(2 ** -100, scale))
    const extreme = countsOf(Number.MAX_VALUE, 2 ** -127, 1)
    expect(extreme.counts.length).toBeLessThanOrEqual(160)
    expect(extreme.scale).toBeGreaterThanOrEqual(-4)
  })

  it('of two counters add up to those of one, whatever the order and scales are', () => {
    const fast = [0.001, 0.002, 0.0021, 0.5]
    const slow = [0, 9, 1e9, 1e-9]
    const both = countsOf(...fast, ...slow)
    expect(addExponential(countsOf(...fast), countsOf(...slow))).toEqual(both)
    expect(addExponential(countsOf(...slow), countsOf(...fast))).toEqual(both)
    expect(addExponential(countsOf(), countsOf(3))).toEqual(countsOf(3))
    expect(addExponential(countsOf(1e-9, 1e-9), countsOf(1e9)).counts.length).toBeLessThan(161)
  })

  it('since an earlier snapshot are those of the values since then', () => {
    const counter = new ExponentialCounter()
    for (const value of [0, 0.5, 4, 4]) counter.record(value)
    const before = counter.snapshot()
    for (const value of [4, 1e7, 1e-7, 0]) counter.record(value)
    const since = exponentialSince(counter.snapshot(), before)
    expect(since.scale).toBeLessThan(before.scale)
    expect(since.zeros).toBe(1)
    expect(since.counts.reduce((sum, count) => sum + count, 0)).toBe(3)
    expect(exponentialSince(before, undefined)).toBe(before)
  })
})

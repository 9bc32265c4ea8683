import { describe, expect, it } from 'vitest'
import { RateBuckets } from '../../src/gateway/proxy/rate-buckets.ts'

describe('limits with more values than the table has room for', () => {
  const spec = { rate: 1, unit: 'Days', burst: 0 } as const
  const buckets = new RateBuckets(undefined, () => 1_000)
  const keyed = buckets.bucket('keyed', { ...spec, isKeyed: true })

  it('refuses some new values, and counts known ones on', () => {
    let admitted = 0
    while (keyed.take(1, `user-${admitted}`)) admitted++
    // The table has twice the cells, and fills unevenly.
    expect(admitted).toBeGreaterThan(100_000)
    expect(keyed.isTableFull).toBe(true)
    expect(keyed.take(1, 'user-0')).toBe(false)
    expect(keyed.isTableFull).toBe(false)
  })

  it('refuses tokens of a value that could not be charged later', () => {
    for (let at = 0; at < 300_000; at++) keyed.charge(1, `more-${at}`)
    const admitted = Array.from({ length: 1_000 }, (_, at) => `late-${at}`).filter((value) =>
      keyed.hasSome(value),
    )
    expect(admitted.length).toBeLessThan(500)
    for (const value of admitted) keyed.charge(1, value)
    expect(admitted.filter((value) => keyed.hasSome(value))).toEqual([])
  })

  it('leaves room for limits without a key', () => {
    const plain = Array.from({ length: 1_000 }, (_, at) => buckets.bucket(`plain-${at}`, spec))
    expect(plain.every((bucket) => bucket.take(1))).toBe(true)
    expect(plain.some((bucket) => bucket.take(1))).toBe(false)
  })
})

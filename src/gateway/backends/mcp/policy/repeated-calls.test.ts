import { expect, it } from 'vitest'
import type { PolicyHost } from '../../../../ground/exchange/rate-limits.ts'
import { RepeatedCalls } from './repeated-calls.ts'

it('refuses repeated calls although the table of counts is full, and drops the oldest counts', () => {
  const full = { take: () => false, isTableFull: true }
  const host = { bucket: () => full } as unknown as PolicyHost
  let now = 0
  const repeats = new RepeatedCalls({ calls: 2, unit: 'Minutes' }, host, () => now)
  const takes = (digest: string, times: number) =>
    Array.from({ length: times }, () => repeats.take(digest))
  expect(takes('a', 4)).toEqual([true, true, false, false])
  // A refused call does not prolong the period.
  now += 30_000
  expect(takes('a', 2)).toEqual([true, false])
  for (let other = 0; other < 8_191; other++) repeats.take(`${other}`)
  expect(repeats.take('a')).toBe(false)
  for (let other = 0; other < 8_192; other++) repeats.take(`${other} again`)
  expect(repeats.take('a')).toBe(true)
})

it('refuses by the shared counts while the table has room', () => {
  const used = { take: () => false, isTableFull: false }
  const host = { bucket: () => used } as unknown as PolicyHost
  expect(new RepeatedCalls({ calls: 2, unit: 'Minutes' }, host).take('a')).toBe(false)
})

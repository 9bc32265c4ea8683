import { expect, it } from 'vitest'
import fc from '../../../test/support/fast-check.ts'
import { TimeTexts } from './time-texts.ts'

it('writes every time as Date does', () => {
  const times = new TimeTexts()
  const most = 8.64e15
  const ms = fc.oneof(
    fc.double({ min: -most, max: most, noNaN: true }),
    fc.double({ min: -5_000, max: 5_000, noNaN: true }),
  )
  fc.assert(fc.property(ms, (at) => void expect(times.of(at)).toBe(new Date(at).toISOString())))
  for (const invalid of [Number.NaN, 1e300]) expect(() => times.of(invalid)).toThrow(RangeError)
})

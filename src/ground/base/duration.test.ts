import { describe, expect, it } from 'vitest'
import { parseDurationMs } from './duration.ts'

describe('parseDurationMs', () => {
  it.each([
    ['15s', 15_000],
    ['500ms', 500],
    ['1h30m', 5_400_000],
    ['1m1s1ms', 61_001],
    ['0s', 0],
  ])('reads %s', (text, expected) => expect(parseDurationMs(text)).toBe(expected))

  it.each(['', '10 minutes', '1d', '-1s', '1.5s', '100000s', '1s1s1s1s1s', 's'])(
    'refuses %j',
    (text) => expect(parseDurationMs(text)).toBeUndefined(),
  )
})

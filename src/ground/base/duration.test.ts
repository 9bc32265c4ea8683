import { describe, expect, it } from 'vitest'
import { durationText, parseDurationMs, readDurationText } from './duration.ts'

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

describe('durationText', () => {
  it.each([
    [0, '0 ms', 0],
    [249.2, '250 ms', 250],
    [1_200, '2 s', 2_000],
    [59_999.5, '1 min', 60_000],
    [90_000, '1 min 30 s', 90_000],
    [10_079_925, '2 h 48 min', 10_080_000],
    [3_599_999, '1 h', 3_600_000],
    [2_592_000_000, '30 d', 2_592_000_000],
    [90_061_000, '1 d 2 h', 93_600_000],
  ])('writes %d ms as %s, which reads as %d ms', (ms, text, read) => {
    expect(durationText(ms)).toBe(text)
    expect(readDurationText(text)).toBe(read)
  })
})

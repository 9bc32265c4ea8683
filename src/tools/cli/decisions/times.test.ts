import { afterEach, describe, expect, it } from 'vitest'
import { timeOf } from './source.ts'

const zone = process.env.TZ
afterEach(() => {
  if (zone === undefined) delete process.env.TZ
  else process.env.TZ = zone
})

describe('times of the command line', () => {
  it.each([
    ['2026-01-31', '2026-01-31T00:00:00.000Z'],
    ['2026-01-31T12:00', '2026-01-31T12:00:00.000Z'],
    ['2026-01-31T12:00:00.5', '2026-01-31T12:00:00.500Z'],
    ['2026-01-31T12:00:00-05:00', '2026-01-31T17:00:00.000Z'],
  ])('%s is the same on machines of every time zone', (text, expected) => {
    process.env.TZ = 'America/New_York'
    expect(timeOf(text, '--since')).toBe(expected)
  })

  it.each([
    ['30d', 30 * 24],
    ['36h', 36],
  ])('%s is before now', (text, hours) => {
    const before = Date.now() - Date.parse(timeOf(text, '--since'))
    expect(Math.round(before / 3_600_000)).toBe(hours)
  })

  it('are refused in other forms', () => {
    expect(() => timeOf('30 days', '--since')).toThrow(
      '--since 30 days is neither a time such as 2026-01-31T12:00:00Z nor a duration such as 15m or 30d',
    )
  })
})

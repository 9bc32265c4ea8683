import { describe, expect, it } from 'vitest'
import { LineBytes } from './line-bytes.ts'
import { Timestamps } from './timestamp.ts'

function clocks() {
  let wall = Date.UTC(2026, 0, 2, 3, 4, 5)
  let monotonic = 100
  const advance = (ms: number, jump = 0) => {
    wall += ms + jump
    monotonic += ms
  }
  const timestamps = new Timestamps(
    () => wall,
    () => monotonic,
  )
  const now = () => {
    const line = new LineBytes(64)
    timestamps.write(line)
    return line.take(line.length).toString()
  }
  return { now, advance }
}

describe('timestamps of the access log', () => {
  it('have the format of RFC 3339 in UTC with microseconds', () => {
    const { now, advance } = clocks()
    expect(now()).toBe('2026-01-02T03:04:05.000000Z')
    advance(0.25)
    expect(now()).toBe('2026-01-02T03:04:05.000250Z')
    advance(999)
    expect(now()).toBe('2026-01-02T03:04:05.999250Z')
    advance(1)
    expect(now()).toBe('2026-01-02T03:04:06.000250Z')
  })

  it('follow the wall clock if it is changed', () => {
    const { now, advance } = clocks()
    now()
    advance(1_000, 3_600_000)
    expect(now()).toBe('2026-01-02T04:04:06.000000Z')
  })
})

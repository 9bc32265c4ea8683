import { describe, expect, it } from 'vitest'
import { chooseEndpoint } from './choose.ts'
import { plainAddress, UpstreamEndpoint } from './endpoint.ts'

const endpoint = (port: number, outstanding = 0): UpstreamEndpoint => {
  const made = new UpstreamEndpoint(plainAddress('10.0.0.1', port))
  made.record({ kind: 'answered', latencyMs: 10 }, () => 0)
  made.outstanding = outstanding
  return made
}
const setOf = (...all: UpstreamEndpoint[]) => ({ preferred: all, all })
const draws = [0, 0.2, 0.49, 0.5, 0.7, 0.99]
const chance = (draw: number, now = 0) => ({ random: () => draw, now: () => now })

/** Who is chosen over many draws. */
const chosen = (set: Parameters<typeof chooseEndpoint>[0], now = 0, avoid?: UpstreamEndpoint) =>
  new Set(draws.map((draw) => chooseEndpoint(set, chance(draw, now), avoid)))

describe('chooseEndpoint', () => {
  it('takes the less busy of two', () => {
    const idle = endpoint(2)
    expect(chosen(setOf(endpoint(1, 5), idle))).toEqual(new Set([idle]))
  })

  it('takes the quicker and the healthier of two', () => {
    const [slow, ill, good] = [endpoint(1), endpoint(2), endpoint(3)]
    slow.record({ kind: 'answered', latencyMs: 500 }, () => 0)
    ill.record({ kind: 'failed', retryAfterMs: 0 }, () => 0)
    expect(chosen(setOf(slow, good))).toEqual(new Set([good]))
    expect(chosen(setOf(ill, good))).toEqual(new Set([good]))
  })

  it('takes the only one, or none', () => {
    const only = endpoint(1, 9)
    expect(chosen(setOf(only))).toEqual(new Set([only]))
    expect(chosen(setOf())).toEqual(new Set([undefined]))
  })

  it('leaves out for 3 s who cannot be reached, longer each time, and takes all where all are out', () => {
    const [down, up] = [endpoint(1), endpoint(2)]
    expect(down.record({ kind: 'unreachable' }, () => 0)).toBe(true)
    expect(chosen(setOf(down, up), 2_999)).toEqual(new Set([up]))
    expect(down.isEjected(() => 3_000)).toBe(false)
    expect(down.record({ kind: 'unreachable' }, () => 3_000)).toBe(true)
    expect(down.isEjected(() => 8_999)).toBe(true)
    up.record({ kind: 'unreachable' }, () => 3_000)
    expect(chosen(setOf(down, up), 3_500).has(undefined)).toBe(false)
  })

  it('leaves out who answers badly five times in a row, and no one for less', () => {
    const bad = endpoint(1)
    const fail = () => bad.record({ kind: 'failed', retryAfterMs: 0 }, () => 0)
    expect([fail(), fail(), fail(), fail()]).toEqual([false, false, false, false])
    bad.record({ kind: 'answered', latencyMs: 10 }, () => 0)
    expect([fail(), fail(), fail(), fail(), fail()]).toEqual([false, false, false, false, true])
  })

  it('leaves out for as long as Retry-After asks, five minutes at most', () => {
    const busy = endpoint(1)
    busy.record({ kind: 'failed', retryAfterMs: 20_000 }, () => 0)
    expect(busy.isEjected(() => 19_999)).toBe(true)
    expect(busy.isEjected(() => 20_000)).toBe(false)
    busy.record({ kind: 'failed', retryAfterMs: 1e9 }, () => 20_000)
    expect(busy.isEjected(() => 320_000)).toBe(false)
  })

  it('stays near while somebody near is in use, and avoids who has just failed', () => {
    const [near, nearToo, far] = [endpoint(1), endpoint(2), endpoint(3)]
    const set = { preferred: [near, nearToo], all: [near, nearToo, far] }
    expect(chosen(set).has(far)).toBe(false)
    expect(chosen(set, 0, near)).toEqual(new Set([nearToo]))
    near.record({ kind: 'unreachable' }, () => 0)
    expect(chosen(set, 1, nearToo)).toEqual(new Set([far]))
  })
})

import { describe, expect, it } from 'vitest'
import { chooseEndpoint, plainAddress, UpstreamEndpoint } from './endpoint.ts'

const endpoint = (port: number, outstanding = 0): UpstreamEndpoint => {
  const made = new UpstreamEndpoint(plainAddress('10.0.0.1', port))
  made.record({ kind: 'answered', latencyMs: 10 }, () => 0)
  made.outstanding = outstanding
  return made
}
const setOf = (...all: UpstreamEndpoint[]) => ({ preferred: all, all })
const draws = [0, 0.2, 0.49, 0.5, 0.7, 0.99]
const pairs = draws.flatMap((first) => draws.map((second) => [first, second]))
const chance = (pair: readonly number[], now = 0) => {
  let count = 0
  return { random: () => pair[count++ % 2] ?? 0, now: () => now }
}

/** The chosen endpoints for all pairs of random numbers, in order. */
const choices = (set: Parameters<typeof chooseEndpoint>[0], now = 0, avoid?: UpstreamEndpoint) =>
  pairs.map((pair) => chooseEndpoint(set, chance(pair, now), avoid))
const chosen = (...args: Parameters<typeof choices>) => new Set(choices(...args))
/** The share of choices that an endpoint gets. */
const share = (of: UpstreamEndpoint, ...args: Parameters<typeof choices>) =>
  choices(...args).filter((one) => one === of).length / pairs.length

describe('chooseEndpoint', () => {
  it('prefers the less busy of two endpoints', () => {
    const idle = endpoint(2)
    expect(share(idle, setOf(endpoint(1, 5), idle))).toBe(0.75)
  })

  it('prefers the faster and the healthier of two endpoints', () => {
    const [slow, ill, good] = [endpoint(1), endpoint(2), endpoint(3)]
    slow.record({ kind: 'answered', latencyMs: 500 }, () => 0)
    ill.record({ kind: 'failed', retryAfterMs: 0 }, () => 0)
    expect(share(good, setOf(slow, good))).toBe(0.75)
    expect(share(good, setOf(ill, good))).toBe(0.75)
  })

  it('tries the worst endpoint occasionally, in case it has recovered', () => {
    const slow = endpoint(1)
    slow.record({ kind: 'answered', latencyMs: 500 }, () => 0)
    const set = setOf(slow, endpoint(2), endpoint(3))
    expect(share(slow, set)).toBeGreaterThan(0)
    expect(share(slow, set)).toBeLessThan(0.2)
  })

  it('uses all endpoints, also ejected ones, if fewer are usable than the panic threshold', () => {
    const [first, second, up] = [endpoint(1), endpoint(2), endpoint(3)]
    for (const down of [first, second]) down.record({ kind: 'unreachable' }, () => 0)
    const all = setOf(first, second, up)
    const chosenWith = (panicPercent: number) =>
      new Set(pairs.map((pair) => chooseEndpoint(all, { ...chance(pair), panicPercent })))
    expect(chosenWith(34)).toEqual(new Set([first, second, up]))
    expect(chosenWith(33)).toEqual(new Set([up]))
  })

  it('gives new and returning endpoints fewer requests during a slow start', () => {
    const [old, fresh] = [endpoint(1), endpoint(2)]
    fresh.outstanding = -1
    const shareOfFresh = (now: number) => {
      const numbers = draws.flatMap((first) => draws.flatMap((second) => [first, second, 0.3]))
      let count = 0
      const random = () => numbers[count++ % numbers.length] ?? 0
      const options = { random, now: () => now, slowStartMs: 1_000 }
      const found = pairs.map(() => chooseEndpoint(setOf(old, fresh), options))
      return found.filter((one) => one === fresh).length / pairs.length
    }
    old.warmth(() => -10_000, 1_000)
    const cold = shareOfFresh(0)
    const warm = shareOfFresh(1_000)
    expect(cold).toBeLessThan(warm)
    fresh.record({ kind: 'unreachable' }, () => 1_000)
    expect(fresh.isEjected(() => 5_000)).toBe(false)
    expect(fresh.warmth(() => 5_000, 1_000)).toBe(0.1)
    expect(fresh.warmth(() => 5_500, 1_000)).toBe(0.5)
  })

  it('returns the only endpoint, or undefined if there is none', () => {
    const only = endpoint(1, 9)
    expect(chosen(setOf(only))).toEqual(new Set([only]))
    expect(chosen(setOf())).toEqual(new Set([undefined]))
  })

  it('ejects an unreachable endpoint for 3 s, then longer, but uses ejected ones if there is no other', () => {
    const [down, up] = [endpoint(1), endpoint(2)]
    expect(down.record({ kind: 'unreachable' }, () => 0)).toBe(true)
    expect(chosen(setOf(down, up), 2_999)).toEqual(new Set([up]))
    expect(down.isEjected(() => 3_000)).toBe(false)
    expect(down.record({ kind: 'unreachable' }, () => 3_000)).toBe(true)
    expect(down.isEjected(() => 8_999)).toBe(true)
    up.record({ kind: 'unreachable' }, () => 3_000)
    expect(chosen(setOf(down, up), 3_500).has(undefined)).toBe(false)
  })

  it('ejects an endpoint after five failures in a row, and not before', () => {
    const bad = endpoint(1)
    const fail = () => bad.record({ kind: 'failed', retryAfterMs: 0 }, () => 0)
    expect([fail(), fail(), fail(), fail()]).toEqual([false, false, false, false])
    bad.record({ kind: 'answered', latencyMs: 10 }, () => 0)
    expect([fail(), fail(), fail(), fail(), fail()]).toEqual([false, false, false, false, true])
  })

  it('ejects an endpoint for as long as Retry-After says, at most five minutes', () => {
    const busy = endpoint(1)
    busy.record({ kind: 'failed', retryAfterMs: 20_000 }, () => 0)
    expect(busy.isEjected(() => 19_999)).toBe(true)
    expect(busy.isEjected(() => 20_000)).toBe(false)
    busy.record({ kind: 'failed', retryAfterMs: 1e9 }, () => 20_000)
    expect(busy.isEjected(() => 320_000)).toBe(false)
  })

  it('prefers endpoints in the zone while one is usable, and avoids failed endpoints', () => {
    const [near, nearToo, far] = [endpoint(1), endpoint(2), endpoint(3)]
    const set = { preferred: [near, nearToo], all: [near, nearToo, far] }
    expect(chosen(set).has(far)).toBe(false)
    expect(chosen(set, 0, near)).toEqual(new Set([nearToo]))
    near.record({ kind: 'unreachable' }, () => 0)
    expect(chosen(set, 1, nearToo)).toEqual(new Set([far]))
  })
})

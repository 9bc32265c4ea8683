import { describe, expect, it } from 'vitest'
import { createHealthMemory, type HealthSlot, HealthSlots, isHealthy } from './health-slots.ts'

const rules = { healthyThreshold: 2, unhealthyThreshold: 3 }
const intervalMs = 1_000

const slotOf = (slots: HealthSlots, name = 'a', now = 0): HealthSlot => {
  const slot = slots.of(name, now)
  if (slot === undefined) throw new Error('no slot')
  return slot
}

/** The health after each result. */
function healthAfter(results: string, more: object = {}): string {
  const slot = slotOf(new HealthSlots(createHealthMemory(8)))
  const all = { ...rules, ...more }
  return [...results].map((result) => (slot.record(result === '+', all).is ? '+' : '-')).join('')
}

describe('HealthSlots', () => {
  it('change the health of an endpoint only after as many results in a row as the threshold', () => {
    expect(healthAfter('--+--+---')).toBe('++++++++-')
    expect(healthAfter('---+-+-++-')).toBe('++------++')
  })

  it('need one success for an endpoint that starts unhealthy', () => {
    expect(healthAfter('+--', { startsUnhealthy: true })).toBe('+++')
    expect(healthAfter('-++', { startsUnhealthy: true })).toBe('--+')
  })

  it('let one worker send each probe, and another one if the first is gone', () => {
    const memory = createHealthMemory(8)
    const [first, second] = [0, 1].map((worker) => slotOf(new HealthSlots(memory, worker)))
    expect(first?.claim(0, intervalMs)).toBe(true)
    expect(second?.claim(0, intervalMs)).toBe(false)
    expect(second?.claim(intervalMs - 1, intervalMs)).toBe(false)
    expect(second?.claim(intervalMs, intervalMs)).toBe(true)
    expect([first?.isOwn, second?.isOwn]).toEqual([false, true])
  })

  it('share results, also with a worker that starts later', () => {
    const memory = createHealthMemory(8)
    const first = slotOf(new HealthSlots(memory, 0))
    for (let count = 0; count < 3; count++) first.record(false, rules)
    expect(isHealthy(slotOf(new HealthSlots(memory, 1)).state, rules)).toBe(false)
  })

  it('give the slots of endpoints that were not probed for long to new ones, without their results', () => {
    const slots = new HealthSlots(createHealthMemory(2))
    const [a] = [slotOf(slots, 'a'), slotOf(slots, 'b')]
    for (let count = 0; count < 3; count++) a.record(false, rules)
    expect(slots.of('c', 800_000)).toBe(undefined)
    const later = 901_000
    const fresh = [slotOf(slots, 'c', later), slotOf(slots, 'd', later)]
    expect(fresh.map(({ state }) => isHealthy(state, rules))).toEqual([true, true])
    expect(a.isLost).toBe(true)
  })

  it.each([1_000_000, 2 ** 31 + 1_000_000, 2 ** 32 - 1_000_000])(
    'forget the results of an endpoint that returns after %d ms, and let it be probed',
    (awayMs) => {
      const slots = new HealthSlots(createHealthMemory(8))
      const before = slotOf(slots)
      before.claim(0, intervalMs)
      for (let count = 0; count < 3; count++) before.record(false, rules)
      const returned = awayMs | 0
      const slot = slotOf(slots, 'a', returned)
      expect(isHealthy(slot.state, rules)).toBe(true)
      expect(slot.dueIn(returned)).toBeLessThanOrEqual(0)
      expect(slot.claim(returned, intervalMs)).toBe(true)
    },
  )

  it('work across the end of the range of the clock', () => {
    const end = 2 ** 31 - 1
    const slot = slotOf(new HealthSlots(createHealthMemory(8)), 'a', end)
    expect(slot.claim(end, intervalMs)).toBe(true)
    expect(slot.claim((end + 999) | 0, intervalMs)).toBe(false)
    expect(slot.claim((end + 1_000) | 0, intervalMs)).toBe(true)
  })
})

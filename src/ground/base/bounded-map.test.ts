import { describe, expect, it, vi } from 'vitest'
import { BoundedMap, ExpiringMap } from './bounded-map.ts'

describe('BoundedMap', () => {
  it('drops the oldest entry for a new key, and none for a key that it has', () => {
    const map = new BoundedMap<string, number>(2).set('a', 1).set('b', 2)
    map.set('a', 3)
    expect([...map]).toEqual([
      ['a', 3],
      ['b', 2],
    ])
    map.set('c', 4)
    expect([...map.keys()]).toEqual(['b', 'c'])
  })
})

describe('ExpiringMap', () => {
  it('returns a value until its time is over', () => {
    vi.useFakeTimers()
    const map = new ExpiringMap<string, number>(2, 1_000)
    map.set('a', 1)
    vi.advanceTimersByTime(999)
    expect(map.get('a')).toBe(1)
    vi.advanceTimersByTime(1)
    expect(map.get('a')).toBeUndefined()
    vi.useRealTimers()
  })
})

import { describe, expect, it } from 'vitest'
import fc from '../../../test/support/fast-check.ts'
import type { Position, SnapshotInfo } from './log.ts'
import { surplusSnapshots } from './snapshot-thinning.ts'

const megabyte = 1024 * 1024
const infoOf = (position: number, bytes: number, foldVersion = '1'): SnapshotInfo => ({
  position: position as Position,
  foldVersion,
  bytes,
})

/** What stays of a log that stores a snapshot every 10 events. */
function grow(count: number, bytes: number, purgedUpTo = 0): SnapshotInfo[] {
  let kept: SnapshotInfo[] = []
  for (let n = 1; n <= count; n++) {
    kept.push(infoOf(10 * n, bytes))
    const log = { lastPosition: 10 * n, purgedUpTo, bytes: 0, foldVersion: '1' }
    const surplus = new Set(surplusSnapshots(kept, log))
    kept = kept.filter((one) => !surplus.has(one))
  }
  return kept
}

const sizeOf = (list: readonly SnapshotInfo[]) => list.reduce((sum, { bytes }) => sum + bytes, 0)

describe('the thinning of snapshots', () => {
  it('removes nothing while all snapshots fit into the budget', () => {
    expect(grow(60, megabyte)).toHaveLength(60)
  })

  it('stays within the budget, and keeps distances in proportion to age', () => {
    const kept = grow(2_000, megabyte)
    expect(sizeOf(kept)).toBeLessThanOrEqual(64 * megabyte)
    expect(kept.length).toBeGreaterThan(60)
    expect(kept.at(-1)?.position).toBe(20_000)
    for (const [index, { position }] of kept.entries()) {
      const gap = position - (kept[index - 1]?.position ?? 0)
      expect(gap).toBeLessThanOrEqual(Math.max(20, (20_000 - position) / 4 + 100))
    }
  })

  it('gives a large log a larger budget', () => {
    const all = Array.from({ length: 200 }, (_, index) => infoOf(index + 1, megabyte))
    const log = { lastPosition: 200, purgedUpTo: 0, foldVersion: '1' }
    expect(surplusSnapshots(all, { ...log, bytes: 800 * megabyte })).toEqual([])
    expect(surplusSnapshots(all, { ...log, bytes: 400 * megabyte })).toHaveLength(100)
  })

  it('removes snapshots of other fold versions first, and those before a purge always', () => {
    const all = [
      infoOf(1, 1),
      infoOf(10, 30 * megabyte, 'old'),
      infoOf(20, 30 * megabyte, 'old'),
      infoOf(30, 30 * megabyte),
      infoOf(40, 1),
    ]
    const log = { lastPosition: 40, purgedUpTo: 5, bytes: 0, foldVersion: '1' }
    const removed = surplusSnapshots(all, log).map(({ position }) => position)
    expect(removed).toEqual([1, 20])
  })

  it('never removes the newest snapshot, nor the one that covers the purged events', () => {
    const sizes = fc.array(fc.nat(100), { minLength: 1, maxLength: 30 })
    fc.assert(
      fc.property(sizes, fc.nat(31), (list, purgedUpTo) => {
        const all = list.map((size, index) => infoOf(index + 1, size * megabyte))
        const log = { lastPosition: list.length, purgedUpTo, bytes: 0, foldVersion: '1' }
        const surplus = new Set(surplusSnapshots(all, log))
        const usable = all.filter(({ position }) => position >= purgedUpTo)
        expect(surplus.has(usable.at(-1) as SnapshotInfo)).toBe(false)
        if (purgedUpTo > 0) expect(surplus.has(usable[0] as SnapshotInfo)).toBe(false)
        expect(all.filter((one) => surplus.has(one) && one.position < purgedUpTo).length).toBe(
          all.length - usable.length,
        )
      }),
    )
  })
})

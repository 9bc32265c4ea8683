import type { SnapshotInfo } from './log.ts'

/** What snapshots may use on disk, however small the log is. */
const leastBudgetBytes = 64 * 1024 * 1024
/** The share of the log's own size that snapshots may use. */
const budgetShare = 0.25
const maxSnapshots = 1_000

interface LogSize {
  readonly lastPosition: number
  /** Position up to which events were purged; 0 if none were. */
  readonly purgedUpTo: number
  readonly bytes: number
  /** The fold version of the newest snapshot; snapshots of other versions are removed first. */
  readonly foldVersion: string
}

/**
 * Selects the snapshots to remove, so that the others fit into the budget. The distance between the
 * remaining ones grows in proportion to their age. The newest snapshot stays, and so does the one from which
 * the oldest event in the log can be folded. `snapshots` are in order.
 */
export function surplusSnapshots(
  snapshots: readonly SnapshotInfo[],
  { lastPosition, purgedUpTo, bytes, foldVersion }: LogSize,
): SnapshotInfo[] {
  const kept = snapshots.filter(({ position }) => position >= purgedUpTo)
  const surplus = snapshots.filter(({ position }) => position < purgedUpTo)
  const budget = Math.max(leastBudgetBytes, bytes * budgetShare)
  let size = kept.reduce((sum, one) => sum + one.bytes, 0)
  const covering = purgedUpTo > 0 ? kept[0] : undefined
  while (size > budget || kept.length > maxSnapshots) {
    const rank = (one: SnapshotInfo, index: number): number => {
      if (one === covering || index === kept.length - 1) return Number.POSITIVE_INFINITY
      if (one.foldVersion !== foldVersion) return -1
      const gap = (kept[index + 1]?.position ?? lastPosition) - (kept[index - 1]?.position ?? 0)
      return gap / (lastPosition - one.position + 1)
    }
    const ranks = kept.map(rank)
    const least = Math.min(...ranks)
    if (least === Number.POSITIVE_INFINITY) break
    const [removed] = kept.splice(ranks.indexOf(least), 1)
    if (removed === undefined) break
    surplus.push(removed)
    size -= removed.bytes
  }
  return surplus
}

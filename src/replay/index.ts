/**
 * Replays a recorded log: the same fold, without sources, proxies or clocks. Given the same fold
 * version, it arrives at the same digests that the running controller recorded.
 */
import { Fold, type FoldSnapshot, foldVersion, type RecordedEvent } from '../actors/fold.ts'
import { createGraph, type DerivationOptions } from '../desired/derivations.ts'

export {
  type Digests,
  Fold,
  type FoldSnapshot,
  foldVersion,
  type RecordedEvent,
} from '../actors/fold.ts'

/** One published state of the log beside what replay makes of the same events. */
export interface Comparison {
  /** Position of the last event that the published state contains. */
  readonly version: number
  readonly recorded: { readonly desired: string; readonly status: string }
  readonly replayed: { readonly desired: string; readonly status: string } | undefined
  /** Undefined where nothing can be claimed: of another fold version, or of a log without its beginning. */
  readonly equal: boolean | undefined
  readonly foldVersion: string
}

export interface Replay {
  readonly fold: Fold
  /** Number of events that were read. */
  readonly events: number
  /** Events between the beginning, or the stored state, and the first that was read: gone. */
  readonly missing: number
  readonly comparisons: readonly Comparison[]
  /** Version of the fold that replayed. */
  readonly foldVersion: string
}

/** A fold for stepping through events one by one: empty, or with the state that was stored. */
export function createFold(options: DerivationOptions, base?: FoldSnapshot): Fold {
  const fold = new Fold(createGraph(options))
  if (base !== undefined) fold.restore(base)
  return fold
}

/** Folds recorded events from the beginning, or from a stored state on, in order. */
export async function replay(
  events: AsyncIterable<RecordedEvent> | Iterable<RecordedEvent>,
  options: DerivationOptions,
  base?: FoldSnapshot,
): Promise<Replay> {
  const fold = createFold(options, base)
  const digestsAt = new Map<number, { desired: string; status: string }>()
  const comparisons: Comparison[] = []
  let count = 0
  let missing = 0
  for await (const entry of events) {
    if (count === 0) missing = Math.max(0, entry.position - 1 - fold.position)
    count++
    fold.apply(entry)
    if (entry.position >= fold.position) digestsAt.set(entry.position, fold.digests())
    const { event } = entry
    if (event.type !== 'dev.sluice.desired.published.v1') continue
    const { version, digest, statusDigest, foldVersion: writer } = event.data
    const recorded = { desired: digest, status: statusDigest }
    const replayed = digestsAt.get(version)
    // Versions rise: what is older is asked for no more.
    for (const position of digestsAt.keys()) {
      if (position >= version) break
      digestsAt.delete(position)
    }
    const same = replayed?.desired === recorded.desired && replayed.status === recorded.status
    const isKnown = base === undefined || version >= base.position
    const equal = writer === foldVersion && missing === 0 && isKnown ? same : undefined
    comparisons.push({ version, recorded, replayed, equal, foldVersion: writer })
  }
  return { fold, events: count, missing, comparisons, foldVersion }
}

/**
 * Replays a recorded log with the fold of the controller, but without sources, proxies or clocks. With the
 * same fold version, it computes the same digests that the running controller recorded.
 */
import {
  type Digests,
  Fold,
  type FoldSnapshot,
  foldVersion,
  type RecordedEvent,
} from '../actors/fold.ts'
import { createGraph, type DerivationOptions } from '../desired/derivations.ts'

export {
  type Digests,
  Fold,
  type FoldSnapshot,
  foldVersion,
  type RecordedEvent,
} from '../actors/fold.ts'
export type { DerivationOptions } from '../desired/derivations.ts'

/** A published state whose recorded digests differ from those of the replay. */
export interface Comparison {
  /** Position of the last event that the published state contains. */
  readonly version: number
  readonly recorded: { readonly desired: string; readonly status: string }
  readonly replayed: { readonly desired: string; readonly status: string } | undefined
  readonly equal: false
  /** Version of the fold that published the state. */
  readonly foldVersion: string
}

export interface Replay {
  readonly fold: Fold
  /** Number of events that were read. */
  readonly events: number
  /** Number of events missing between the beginning, or the stored state, and the first event read. */
  readonly missing: number
  /** Number of published states. */
  readonly published: number
  /** Number of published states not compared, because of another fold version or missing earlier events. */
  readonly incomparable: number
  /** Published states whose digests differ, in order. */
  readonly different: readonly Comparison[]
  /** Version of the fold that replayed the log. */
  readonly foldVersion: string
}

/** Creates a fold that is empty or has the stored state `base`; events are then applied one by one. */
export function createFold(options: DerivationOptions, base?: FoldSnapshot): Fold {
  const fold = new Fold(createGraph(options))
  if (base !== undefined) fold.restore(base)
  return fold
}

/** Folds recorded events in order, from the beginning or from a stored state. */
export async function replay(
  events: AsyncIterable<RecordedEvent> | Iterable<RecordedEvent>,
  options: DerivationOptions,
  base?: FoldSnapshot,
): Promise<Replay> {
  const fold = createFold(options, base)
  const history = new DigestHistory()
  const different: Comparison[] = []
  let published = 0
  let incomparable = 0
  let count = 0
  let missing = 0
  for await (const entry of events) {
    if (count === 0) missing = Math.max(0, entry.position - 1 - fold.position)
    count++
    fold.apply(entry)
    if (entry.position >= fold.position) history.note(entry.position, fold.digests())
    const { event } = entry
    if (event.type !== 'dev.sluice.desired.published.v1') continue
    const { version, digest, statusDigest, foldVersion: writer } = event.data
    const recorded = { desired: digest, status: statusDigest }
    const replayed = history.at(version)
    const isSame = replayed?.desired === recorded.desired && replayed.status === recorded.status
    const isKnown = base === undefined || version >= base.position
    // Changes are not used here; without this call they would accumulate.
    fold.takeChange()
    published++
    if (writer !== foldVersion || missing > 0 || !isKnown) incomparable++
    else if (!isSame) {
      different.push({ version, recorded, replayed, equal: false, foldVersion: writer })
    }
  }
  return { fold, events: count, missing, published, incomparable, different, foldVersion }
}

/** Digests by position, stored only where they changed. Positions before the last queried one are dropped. */
class DigestHistory {
  #changes: { readonly position: number; readonly digests: Digests }[] = []
  #last = 0

  note(position: number, digests: Digests): void {
    this.#last = position
    const newest = this.#changes.at(-1)?.digests
    if (newest?.desired === digests.desired && newest.status === digests.status) return
    this.#changes.push({ position, digests })
  }

  /** Returns the digests at a position, if known. Positions must be queried in ascending order. */
  at(position: number): Digests | undefined {
    if (position > this.#last) return undefined
    const index = this.#changes.findLastIndex((change) => change.position <= position)
    if (index < 0) return undefined
    // Older positions are not queried again.
    this.#changes = this.#changes.slice(index)
    return this.#changes[0]?.digests
  }
}

/**
 * Replays a recorded log: the same fold, without sources, proxies or clocks. Given the same fold
 * version, it arrives at the same digests that the running controller recorded.
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
  /** Number of published states. */
  readonly published: number
  /** Those of them that nothing can be claimed about. */
  readonly incomparable: number
  /** Those that came out differently, in order. */
  readonly different: readonly Comparison[]
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
    const same = replayed?.desired === recorded.desired && replayed.status === recorded.status
    const isKnown = base === undefined || version >= base.position
    const equal = writer === foldVersion && missing === 0 && isKnown ? same : undefined
    // Nobody wants what has changed, and all that ever did would add up.
    fold.takeChange()
    published++
    if (equal === undefined) incomparable++
    if (equal === false) different.push({ version, recorded, replayed, equal, foldVersion: writer })
  }
  return { fold, events: count, missing, published, incomparable, different, foldVersion }
}

/** Digests since the state that was asked for last: where they changed, and nothing else is kept. */
class DigestHistory {
  #changes: { readonly position: number; readonly digests: Digests }[] = []
  #last = 0

  note(position: number, digests: Digests): void {
    this.#last = position
    const newest = this.#changes.at(-1)?.digests
    if (newest?.desired === digests.desired && newest.status === digests.status) return
    this.#changes.push({ position, digests })
  }

  /** As of a position; undefined before the first and behind the last. Positions must rise. */
  at(position: number): Digests | undefined {
    if (position > this.#last) return undefined
    const index = this.#changes.findLastIndex((change) => change.position <= position)
    if (index < 0) return undefined
    // Versions rise: what is older is asked for no more.
    this.#changes = this.#changes.slice(index)
    return this.#changes[0]?.digests
  }
}

/** The fold of a log after its last event, and, more slowly, after any other. */
import {
  createFold,
  type DerivationOptions,
  type Fold,
  type FoldSnapshot,
  type RecordedEvent,
} from '../../src/past/replay/index.ts'

/** Number of snapshots; when there are more, every second one is dropped. */
const maxSnapshots = 16
const firstSpacing = 1_024

interface Kept {
  /** Number of events that the snapshot contains. */
  readonly count: number
  readonly snapshot: FoldSnapshot
}

export class Folds {
  readonly #options: DerivationOptions
  readonly #read: (index: number) => RecordedEvent
  readonly #borrow: () => Fold | undefined
  /** The state after the last event; undefined if it was given away. */
  #newest: Fold | undefined
  #count: number
  #spacing = firstSpacing
  readonly #base: Kept | undefined
  #kept: readonly Kept[] = []
  /** The fold that was last asked for an earlier event; it can only go forward. */
  #earlier: { readonly fold: Fold; count: number } | undefined

  /**
   * `read` returns an event that was added, by its index from 0. `base` is the state after `count` events, and
   * `borrow` takes a fold of the same log from others that can do without it.
   */
  constructor(
    options: DerivationOptions,
    read: (index: number) => RecordedEvent,
    borrow: () => Fold | undefined,
    count = 0,
    base?: FoldSnapshot,
  ) {
    this.#options = options
    this.#read = read
    this.#count = count
    this.#borrow = borrow
    this.#newest = createFold(options, base, base && borrow())
    this.#newest.dropChange()
    this.#base = base && { count, snapshot: this.#newest.snapshot() }
  }

  /** The state after the last event. */
  get newest(): Fold {
    if (this.#newest === undefined) {
      this.#newest = this.#foldTo(this.#count)
      this.#earlier = undefined
    }
    return this.#newest
  }

  /** Gives away a fold to be reused; states are then computed with another one when they are asked for. */
  release(): Fold | undefined {
    const fold = this.#newest ?? this.#earlier?.fold
    this.#newest = undefined
    this.#earlier = undefined
    return fold
  }

  /** Number of events that are folded, with those of the state that was given. */
  get count(): number {
    return this.#count
  }

  /** Folds the next event. Returns what it changed in statuses and resources; undefined if nothing. */
  add(recorded: RecordedEvent): ReturnType<Fold['takeChange']> | undefined {
    const { newest } = this
    newest.apply(recorded)
    this.#count++
    if (this.#count % this.#spacing === 0) this.#keep()
    return newest.changedAt === recorded.position ? newest.takeChange() : undefined
  }

  #keep(): void {
    const kept = [...this.#kept, { count: this.#count, snapshot: this.newest.snapshot() }]
    if (kept.length <= maxSnapshots) {
      this.#kept = kept
      return
    }
    this.#spacing *= 2
    this.#kept = kept.filter(({ count }) => count % this.#spacing === 0)
  }

  /** The state after the first `count` events. It is valid until the next call. */
  after(count: number): Fold {
    return count >= this.#count ? this.newest : this.#foldTo(count)
  }

  #foldTo(count: number): Fold {
    const nearest = this.#kept.findLast((kept) => kept.count <= count) ?? this.#base
    let cursor = this.#earlier
    if (cursor === undefined || cursor.count > count || cursor.count < (nearest?.count ?? 0)) {
      const reused = nearest && (cursor?.fold ?? this.#borrow())
      this.#earlier = undefined
      const fold = createFold(this.#options, nearest?.snapshot, reused)
      cursor = { fold, count: nearest?.count ?? 0 }
    }
    this.#earlier = cursor
    while (cursor.count < count) {
      cursor.fold.apply(this.#read(cursor.count))
      cursor.count++
    }
    cursor.fold.dropChange()
    return cursor.fold
  }
}

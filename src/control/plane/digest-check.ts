/**
 * Checks that all replicas derive the same state from the log. At every position that is a multiple of
 * `step`, each replica appends digests of its state, and compares those of other replicas with its own at the
 * same position. A difference is a bug: it is counted, logged and recorded.
 */
import {
  type DigestTakenData,
  digestsDiffered,
  digestTaken,
  type SluiceEvent,
} from '../../../events/index.ts'
import { type Fold, foldVersion } from '../actors/fold.ts'
import { newEvent, type Recorded } from '../log/index.ts'
import type { ControlPlaneOptions } from './parts.ts'

interface DigestCheckOptions extends Pick<ControlPlaneOptions, 'metrics' | 'notify' | 'every'> {
  readonly fold: Fold
  /** Name of this run of this replica. */
  readonly replica: string
  /** Queues events, which are appended as soon as the log accepts them. */
  readonly append: (events: readonly SluiceEvent[]) => void
}

/** Default number of positions between two checks: more than the digest events that one check of many replicas appends. */
const defaultStep = 128
/** Number of own digests that are kept, since digests of other replicas may arrive late. */
const keptPositions = 64

const writer = { source: '/sluice/digest', epoch: 0 }

export class DigestCheck {
  readonly #options: DigestCheckOptions
  readonly #step: number
  readonly #own = new Map<number, DigestTakenData>()
  #isLive = false

  constructor(options: DigestCheckOptions) {
    this.#options = options
    this.#step = options.every?.digests ?? defaultStep
  }

  /** Called once the log was read to its end. From now on this replica appends its digests. */
  begin(): void {
    this.#isLive = true
  }

  /** Called after an event was folded. */
  folded({ position, event }: Recorded): void {
    if (event.type === digestTaken.type) this.#compare(event.data)
    if (position % this.#step === 0) this.#take(position)
  }

  #take(position: number): void {
    const { fold, replica, append } = this.#options
    const { desired, status } = fold.digests()
    const data = { replica, position, desired, status, foldVersion }
    this.#own.set(position, data)
    this.#own.delete(position - this.#step * keptPositions)
    if (!this.#isLive) return
    const id = `0:${replica}:${position}:${digestTaken.type}`
    append([newEvent(digestTaken, writer, { kind: 'Replica', name: replica }, { id, data })])
  }

  #compare(other: DigestTakenData): void {
    const { replica, metrics, append, notify } = this.#options
    const own = this.#own.get(other.position)
    if (own === undefined || other.replica === replica || other.foldVersion !== foldVersion) return
    const isEqual = other.desired === own.desired && other.status === own.status
    metrics.add('digest_checks_total', 1, isEqual ? 'equal' : 'different')
    if (isEqual || !this.#isLive) return
    const { position } = other
    notify(
      'error',
      `at position ${position} this replica and ${other.replica} derived different states from the same log: desired ${own.desired} and ${other.desired}, conditions ${own.status} and ${other.status}`,
    )
    const data = {
      ...own,
      other: other.replica,
      otherDesired: other.desired,
      otherStatus: other.status,
    }
    const id = `0:${own.replica}:${position}:${other.replica}:${digestsDiffered.type}`
    append([
      newEvent(digestsDiffered, writer, { kind: 'Replica', name: own.replica }, { id, data }),
    ])
  }
}

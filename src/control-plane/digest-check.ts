/**
 * Do all replicas derive the same state from the log? At every position that is a multiple of the
 * step each one appends its digests, and compares those of the others with its own of the same
 * position. A difference is a bug: it is counted, logged and recorded.
 */
import {
  createEvent,
  type DigestTakenData,
  digestsDiffered,
  digestTaken,
  type SluiceEvent,
} from '../../events/index.ts'
import { type Fold, foldVersion } from '../actors/fold.ts'
import { systemClock } from '../base/clock.ts'
import { clusterName, type Recorded, subjectOf } from '../log/index.ts'
import type { ControlPlaneOptions } from './parts.ts'

interface DigestCheckOptions extends Pick<ControlPlaneOptions, 'metrics' | 'notify'> {
  readonly fold: Fold
  /** Name of this run of this replica. */
  readonly replica: string
  /** Appends when the log takes events. */
  readonly append: (events: readonly SluiceEvent[]) => void
}

/** Few enough that the answers of many replicas never fill the step by themselves. */
const step = 128
/** Digests of other replicas may come late. */
const keptPositions = 64

export class DigestCheck {
  readonly #options: DigestCheckOptions
  readonly #own = new Map<number, DigestTakenData>()
  #isLive = false

  constructor(options: DigestCheckOptions) {
    this.#options = options
  }

  /** History is read: from now on this replica appends its digests. */
  begin(): void {
    this.#isLive = true
  }

  /** After an event was folded. */
  folded({ position, event }: Recorded): void {
    if (event.type === digestTaken.type) this.#compare(event.data)
    if (position % step === 0) this.#take(position)
  }

  #take(position: number): void {
    const { fold, replica, append } = this.#options
    const { desired, status } = fold.digests()
    const data = { replica, position, desired, status, foldVersion }
    this.#own.set(position, data)
    for (const old of this.#own.keys()) {
      if (this.#own.size <= keptPositions) break
      this.#own.delete(old)
    }
    if (!this.#isLive) return
    const content = this.#content(`${position}:${digestTaken.type}`)
    append([createEvent(digestTaken, this.#context(), { ...content, data })])
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
      `at position ${position} this replica and ${other.replica} have different states of one log: desired ${own.desired} and ${other.desired}, conditions ${own.status} and ${other.status}`,
    )
    const data = {
      ...own,
      other: other.replica,
      otherDesired: other.desired,
      otherStatus: other.status,
    }
    const content = this.#content(`${position}:${other.replica}:${digestsDiffered.type}`)
    append([createEvent(digestsDiffered, this.#context(), { ...content, data })])
  }

  #content(suffix: string) {
    const { replica: name } = this.#options
    const subject = subjectOf({ cluster: clusterName, kind: 'Replica', namespace: '', name })
    return { id: `0:${name}:${suffix}`, subject }
  }

  #context() {
    return { source: '/sluice/digest', time: new Date(systemClock.now()).toISOString(), epoch: 0 }
  }
}

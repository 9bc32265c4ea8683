/**
 * Do all replicas make the same of the log? At every position that is a multiple of the step each one
 * tells its digests, and each compares what the others tell with its own of the same position. A
 * difference is a bug: it is counted, said and recorded.
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
import { type Recorded, subjectOf } from '../log/index.ts'
import { clusterName } from './controller/cluster-name.ts'
import type { ControllerMetrics } from './controller/metrics.ts'

export interface DigestCheckOptions {
  readonly fold: Fold
  /** Name of this run of this replica. */
  readonly replica: string
  readonly metrics: Pick<ControllerMetrics, 'add'>
  readonly post: (events: readonly SluiceEvent[]) => void
  readonly say: (severity: 'error', text: string) => void
}

/** Few enough that the answers of many replicas never fill the step by themselves. */
const step = 128
/** Others may tell late. */
const keptPositions = 64

export class DigestCheck {
  readonly #options: DigestCheckOptions
  readonly #own = new Map<number, DigestTakenData>()
  #isLive = false

  constructor(options: DigestCheckOptions) {
    this.#options = options
  }

  /** History is read: from now on the own digests are told. */
  begin(): void {
    this.#isLive = true
  }

  /** After an event was folded. */
  folded({ position, event }: Recorded): void {
    if (event.type === digestTaken.type) this.#compare(event.data)
    if (position % step === 0) this.#take(position)
  }

  #take(position: number): void {
    const { fold, replica, post } = this.#options
    const { desired, status } = fold.digests()
    const data = { replica, position, desired, status, foldVersion }
    this.#own.set(position, data)
    for (const old of this.#own.keys()) {
      if (this.#own.size <= keptPositions) break
      this.#own.delete(old)
    }
    if (!this.#isLive) return
    const content = this.#content(`${position}:${digestTaken.type}`)
    post([createEvent(digestTaken, this.#context(), { ...content, data })])
  }

  #compare(told: DigestTakenData): void {
    const { replica, metrics, post, say } = this.#options
    const own = this.#own.get(told.position)
    if (own === undefined || told.replica === replica || told.foldVersion !== foldVersion) return
    const isEqual = told.desired === own.desired && told.status === own.status
    metrics.add('digest_checks_total', 1, isEqual ? 'equal' : 'different')
    if (isEqual || !this.#isLive) return
    const { position } = told
    say(
      'error',
      `at position ${position} this replica and ${told.replica} have different states of one log: desired ${own.desired} and ${told.desired}, conditions ${own.status} and ${told.status}`,
    )
    const data = {
      ...own,
      other: told.replica,
      otherDesired: told.desired,
      otherStatus: told.status,
    }
    const content = this.#content(`${position}:${told.replica}:${digestsDiffered.type}`)
    post([createEvent(digestsDiffered, this.#context(), { ...content, data })])
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

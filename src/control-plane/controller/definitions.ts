/** Records the versions of the Gateway API that the cluster defines, where the log has others. */
import { randomUUID } from 'node:crypto'
import { createEvent, definitionsObserved, type SluiceEvent } from '../../../events/index.ts'
import type { Fold } from '../../actors/fold.ts'
import { gatewayGroup } from '../../api/names.ts'
import { systemClock } from '../../base/clock.ts'
import { subjectOf } from '../../log/index.ts'
import { kubernetesSource } from '../../watch/kubernetes/source.ts'
import type { AppendStage } from '../append-queue.ts'
import { clusterName } from './cluster-name.ts'

export interface DefinitionsOptions {
  readonly fold: Fold
  readonly keeper: {
    append(stage: AppendStage, events: readonly SluiceEvent[]): Promise<unknown>
  }
  /** The epoch under which the log may be written now. */
  readonly epoch: () => number | undefined
}

export class DefinitionsRecord {
  readonly #options: DefinitionsOptions
  /** Part of event ids, new with every run. */
  readonly #run = randomUUID()
  #count = 0
  #seen: readonly string[] | undefined
  #isWriting = false

  constructor(options: DefinitionsOptions) {
    this.#options = options
  }

  /** What the cluster has now. */
  note(versions: readonly string[]): void {
    this.#seen = versions
    this.update()
  }

  /** The log, or who may write it, may be other than before. */
  update(): void {
    const { fold, keeper, epoch: current } = this.#options
    const epoch = current()
    const versions = this.#seen
    if (epoch === undefined || versions === undefined || this.#isWriting) return
    if (fold.definitions === versions.join(',')) return
    const id = `${epoch}:${this.#run}:${++this.#count}:definitions`
    const ref = { kind: 'CustomResourceDefinition', namespace: '', name: gatewayGroup }
    const subject = subjectOf({ cluster: clusterName, ...ref })
    const time = new Date(systemClock.now()).toISOString()
    const context = { source: kubernetesSource, time, epoch }
    const event = createEvent(definitionsObserved, context, { id, subject, data: { versions } })
    this.#isWriting = true
    // What could not be recorded is compared again at the next change of anything.
    const done = () => {
      this.#isWriting = false
    }
    keeper.append('effect', [event]).then(done, done)
  }
}

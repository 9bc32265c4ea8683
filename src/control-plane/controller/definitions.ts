/** Records the versions of the Gateway API that the cluster defines, where the log has others. */
import { randomUUID } from 'node:crypto'
import { createEvent, definitionsObserved } from '../../../events/index.ts'
import { gatewayGroup } from '../../api/names.ts'
import { systemClock } from '../../base/clock.ts'
import { clusterName, subjectOf } from '../../log/index.ts'
import { kubernetesSource } from '../../watch/kubernetes/source.ts'
import type { Plane } from '../parts.ts'

export class DefinitionsRecord {
  readonly #plane: Pick<Plane, 'fold' | 'writer' | 'logEpoch'>
  /** Part of event ids, new with every run. */
  readonly #run = randomUUID()
  #count = 0
  #seen: readonly string[] | undefined
  #isWriting = false

  constructor(plane: Pick<Plane, 'fold' | 'writer' | 'logEpoch'>) {
    this.#plane = plane
  }

  /** What the cluster has now. */
  note(versions: readonly string[]): void {
    this.#seen = versions
    this.update()
  }

  /** Appends the versions if the log has others and this replica may write it. */
  update(): void {
    const { fold, writer } = this.#plane
    const epoch = this.#plane.logEpoch()
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
    writer.append('effect', [event]).then(done, done)
  }
}

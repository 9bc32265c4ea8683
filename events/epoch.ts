import type { SluiceEvent } from './vocabulary.ts'

/**
 * Decides which events are ignored. A lease cannot stop a stale holder from appending, so readers skip
 * its events if their epoch is lower than that of the last LeaseAcquired. Every fold applies this rule,
 * so that all folds agree.
 */
export class EpochGate {
  #epoch: number

  constructor(epoch = 0) {
    this.#epoch = epoch
  }

  /** Epoch of the newest lease holder; 0 before the first. */
  get epoch(): number {
    return this.#epoch
  }

  /** Returns false if the event must be ignored. Events must be passed in the order of the log. */
  admits({ type, data, epoch }: SluiceEvent): boolean {
    if (type === 'dev.sluice.lease.acquired.v1') {
      const isNewer = data.epoch > this.#epoch
      if (isNewer) this.#epoch = data.epoch
      return isNewer
    }
    if (epoch >= this.#epoch) return true
    // An earlier holder may also have recorded that the proxies of another replica are gone.
    return epoch === 0 && !isWrittenByHolder(type)
  }
}

/** Only the lease holder writes these types. Replicas write others without an epoch, which is then 0. */
function isWrittenByHolder(type: SluiceEvent['type']): boolean {
  return (
    type.startsWith('dev.sluice.resource.') ||
    type.startsWith('dev.sluice.relist.') ||
    type.startsWith('dev.sluice.conditions.') ||
    type.startsWith('dev.sluice.desired.') ||
    type.startsWith('dev.sluice.timer.') ||
    type.startsWith('dev.sluice.jwks.') ||
    type.startsWith('dev.sluice.document.') ||
    type.startsWith('dev.sluice.deployment.')
  )
}

import type { SluiceEvent } from './vocabulary.ts'

/**
 * Which writers count. A lease cannot keep a stale holder from appending, so readers pass over what
 * it appends: an observation of a lower epoch than that of the last LeaseAcquired. Whoever folds a
 * log applies this one rule, so that all agree.
 */
export class EpochGate {
  #epoch: number

  constructor(epoch = 0) {
    this.#epoch = epoch
  }

  /** Epoch of the newest holder; 0 before any. */
  get epoch(): number {
    return this.#epoch
  }

  /** Takes an event in, in the order of the log. Does it count? */
  admits({ type, data, epoch }: SluiceEvent): boolean {
    if (type === 'dev.sluice.lease.acquired.v1') {
      const isNewer = data.epoch > this.#epoch
      if (isNewer) this.#epoch = data.epoch
      return isNewer
    }
    return epoch >= this.#epoch || !isOfHolder(type)
  }
}

/** Answers of proxies and digests come from every replica and carry no epoch. */
function isOfHolder(type: SluiceEvent['type']): boolean {
  return (
    type.startsWith('dev.sluice.resource.') ||
    type.startsWith('dev.sluice.relist.') ||
    type.startsWith('dev.sluice.conditions.') ||
    type.startsWith('dev.sluice.desired.') ||
    type.startsWith('dev.sluice.timer.') ||
    type.startsWith('dev.sluice.jwks.') ||
    type.startsWith('dev.sluice.deployment.')
  )
}

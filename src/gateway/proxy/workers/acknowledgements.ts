/**
 * Combines the states of the workers into what the proxy acknowledges: the lowest sequence of all workers, and
 * the resources that any worker rejects. Each change is sent once. Rejections are sent before the ack of
 * their sequence, so that a rejected resource never counts as programmed.
 */

import type { ConfigChannel } from '../../../control/wire/channel.ts'
import type { ResourceKey } from '../../../ground/model/resources.ts'
import type { WorkerRejection, WorkerState } from './worker-messages.ts'

export class Acknowledgements {
  readonly #proxy: string
  readonly #channel: ConfigChannel
  #watermark = -1
  #rejected = new Map<ResourceKey, WorkerRejection>()

  constructor(proxy: string, channel: ConfigChannel) {
    this.#proxy = proxy
    this.#channel = channel
  }

  /** Sequence of the last change set that is in force in every worker; -1 before the first one. */
  get watermark(): number {
    return this.#watermark
  }

  get rejected(): readonly WorkerRejection[] {
    return [...this.#rejected.values()]
  }

  /** Sends what has changed. `states` has one state per worker, undefined for a worker that is starting. */
  update(states: readonly (WorkerState | undefined)[]): void {
    // While a worker is starting, the previous state stays valid.
    const known = states
      .filter((state) => state !== undefined)
      .filter((state) => state.sequence >= 0)
    if (known.length < states.length) return
    const lowest = Math.min(...known.map(({ sequence }) => sequence))
    const recovered = this.#settleRejections(known, Math.max(lowest, this.#watermark))
    if (lowest > this.#watermark || (recovered && lowest === this.#watermark)) {
      this.#watermark = lowest
      this.#channel.ack(this.#proxy, lowest)
    }
  }

  /** Sends new rejections and recoveries. Returns true if any resource has recovered. */
  #settleRejections(states: readonly WorkerState[], sequence: number): boolean {
    const now = new Map<ResourceKey, WorkerRejection>()
    for (const rejection of states.flatMap(({ rejected }) => rejected)) {
      const other = now.get(rejection.key)
      if (other === undefined || other.sequence < rejection.sequence)
        now.set(rejection.key, rejection)
    }
    const before = this.#rejected
    this.#rejected = now
    for (const [key, rejection] of now) {
      if (isSame(before.get(key), rejection)) continue
      const { code, message } = rejection
      this.#channel.reject(this.#proxy, rejection.sequence, { key, code, message })
    }
    const gone = [...before.keys()].filter((key) => !now.has(key))
    for (const key of gone) this.#channel.recover(this.#proxy, sequence, key)
    return gone.length > 0
  }
}

function isSame(a: WorkerRejection | undefined, b: WorkerRejection): boolean {
  return a?.sequence === b.sequence && a.code === b.code && a.message === b.message
}

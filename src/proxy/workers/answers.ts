/**
 * Turns what each worker has in force into what the proxy answers: the lowest position of all, and
 * the resources that any of them does not have. Told once per change, rejections before the ack
 * that passes them, so that nobody takes a refused resource for a programmed one in between.
 */
import type { ResourceKey } from '../../model/resources.ts'
import type { ConfigChannel } from '../../wire/channel.ts'
import type { WorkerRejection, WorkerState } from './worker-messages.ts'

export class Answers {
  readonly #proxy: string
  readonly #channel: ConfigChannel
  #watermark = -1
  #rejected = new Map<ResourceKey, WorkerRejection>()

  constructor(proxy: string, channel: ConfigChannel) {
    this.#proxy = proxy
    this.#channel = channel
  }

  /** Position up to which every worker has the configuration in force; -1 before the first. */
  get watermark(): number {
    return this.#watermark
  }

  get rejected(): readonly WorkerRejection[] {
    return [...this.#rejected.values()]
  }

  /** Takes in the states of all workers; undefined for one that has none yet. */
  update(states: readonly (WorkerState | undefined)[]): void {
    // A worker that starts knows nothing yet: what was told still stands.
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

  /** Tells what is new and what has gone; has anything gone? */
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

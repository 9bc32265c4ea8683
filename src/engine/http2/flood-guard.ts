import { type FloodKind, floodKinds } from '../limits/http2-floods.ts'

/** Kinds of frames that a peer may send more of, the more it is served. */
type GrantedKind = 'late' | 'ping'

/** The buckets of one connection; made for a kind when it is first met. */
export class FloodGuard {
  readonly #now: () => number
  /** By kind: the time at which the bucket is full again, in milliseconds. */
  readonly #fullAt = new Map<FloodKind, number>()

  /** `now`: monotonic milliseconds. */
  constructor(now: () => number) {
    this.#now = now
  }

  /** Puts some back into the bucket: the peer may send as many frames more. */
  grant(kind: GrantedKind, count: number): void {
    if (this.#fullAt.size === 0) return
    const fullAt = this.#fullAt.get(kind)
    if (fullAt === undefined) return
    this.#fullAt.set(kind, fullAt - (count * 1_000) / floodKinds[kind].perSecond)
  }

  /** Takes one out of the bucket; false if it is empty. */
  admits(kind: FloodKind): boolean {
    const { burst, perSecond } = floodKinds[kind]
    const now = this.#now()
    const fullAt = Math.max(this.#fullAt.get(kind) ?? now, now) + 1_000 / perSecond
    if (fullAt - now > (burst * 1_000) / perSecond) return false
    this.#fullAt.set(kind, fullAt)
    return true
  }
}

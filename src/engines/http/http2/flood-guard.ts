import { type FloodKind, floodKinds } from '../limits/http2-floods.ts'

/** Kinds of frames of which a peer may send more when it is served more. */
type GrantedKind = 'late' | 'ping'

/** The token buckets of one connection; each is created with the first frame of its kind. */
export class FloodGuard {
  readonly #now: () => number
  /** By kind: the time in milliseconds at which the bucket is full again. */
  readonly #fullAt = new Map<FloodKind, number>()

  /** `now` returns monotonic milliseconds. */
  constructor(now: () => number) {
    this.#now = now
  }

  /** Returns `count` tokens to the bucket, so that the peer may send that many more frames. */
  grant(kind: GrantedKind, count: number): void {
    if (this.#fullAt.size === 0) return
    const fullAt = this.#fullAt.get(kind)
    if (fullAt === undefined) return
    this.#fullAt.set(kind, fullAt - (count * 1_000) / floodKinds[kind].perSecond)
  }

  /** Takes a token from the bucket. Returns false if the bucket is empty. */
  admits(kind: FloodKind): boolean {
    const { burst, perSecond } = floodKinds[kind]
    const now = this.#now()
    const fullAt = Math.max(this.#fullAt.get(kind) ?? now, now) + 1_000 / perSecond
    if (fullAt - now > (burst * 1_000) / perSecond) return false
    this.#fullAt.set(kind, fullAt)
    return true
  }
}

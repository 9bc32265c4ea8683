/**
 * How long this replica may believe that it holds the lease: two thirds of the duration from the
 * moment at which the last renewal was *sent*, so that it stops before anybody else may begin. A
 * process that was stopped finds its term over when it goes on. Both clocks are asked: the monotonic
 * one stands still while a machine sleeps, and the other one may be set back.
 */
export class Term {
  readonly #lengthMs: number
  #epoch: number | undefined
  #monotonic = 0
  #wall = 0

  constructor(durationMs: number) {
    this.#lengthMs = (durationMs * 2) / 3
  }

  /** Call it before a renewal is sent; pass what it gives to `extend` once the answer is there. */
  static now(): Instant {
    return { monotonic: performance.now(), wall: Date.now() }
  }

  extend(epoch: number, sent: Instant): void {
    this.#epoch = epoch
    this.#monotonic = sent.monotonic
    this.#wall = sent.wall
  }

  end(): void {
    this.#epoch = undefined
  }

  /** The epoch, even if the term has run out since. */
  get granted(): number | undefined {
    return this.#epoch
  }

  get epoch(): number | undefined {
    return this.leftMs > 0 ? this.#epoch : undefined
  }

  /** Milliseconds until it is over; zero or less if it is. */
  get leftMs(): number {
    if (this.#epoch === undefined) return 0
    const { monotonic, wall } = Term.now()
    return this.#lengthMs - Math.max(monotonic - this.#monotonic, wall - this.#wall)
  }
}

export interface Instant {
  readonly monotonic: number
  readonly wall: number
}

import { GatewayError } from '../../errors/index.ts'
import type { UpstreamStream } from '../contracts/upstream.ts'
import type { LoopTicks } from '../time/loop-ticks.ts'

/** How often a request is sent again that upstreams have refused to look at. */
const mostUnprocessed = 3

/**
 * Decides whether a request is sent once more, on another connection, after its connection was lost.
 * A kept connection may close while we write to it, which does no harm if the request is idempotent
 * (RFC 9110 9.2.2, RFC 9112 9.3.1) or cannot have been seen. HTTP/2 says which requests were not
 * looked at: a GOAWAY names them, or the stream is reset with REFUSED_STREAM (RFC 9113 8.7).
 */
export class Resends {
  readonly #loopTicks: LoopTicks
  /** The tick in which a kept connection was taken; -1 if that does not matter. */
  #acquiredTick = -1
  #hasReplacedKept = false
  #unprocessed = 0

  constructor(turns: LoopTicks) {
    this.#loopTicks = turns
  }

  /** A new attempt begins. */
  reset(): void {
    this.#hasReplacedKept = false
    this.#unprocessed = 0
  }

  /** A stream was acquired for the request. `isRisky`: sending the request twice could do harm. */
  onAcquired(stream: UpstreamStream, isRisky: boolean): void {
    this.#acquiredTick = stream.isIdle && isRisky ? this.#loopTicks.current : -1
  }

  /** `isIdempotent`: the request may be sent twice. */
  admits(died: UpstreamStream, error: GatewayError, isIdempotent: boolean): boolean {
    if (died.isUnprocessed) return this.#unprocessed++ < mostUnprocessed
    if (this.#hasReplacedKept || !this.#diedIdle(died, error, isIdempotent)) return false
    this.#hasReplacedKept = true
    return true
  }

  #diedIdle(died: UpstreamStream, { code }: GatewayError, isIdempotent: boolean): boolean {
    if (code !== 'upstream_reset' || died.served === 0 || died.hasAnswered) return false
    return isIdempotent || this.#acquiredTick === (died.lostTick ?? this.#loopTicks.current)
  }
}

/** No connection could be made because memory is short. */
export function isOverload(thrown: unknown): thrown is GatewayError {
  return thrown instanceof GatewayError && thrown.code === 'overloaded'
}

/** Connects; returns false if memory is too short for a connection. */
export function unlessOverloaded(connect: () => void): boolean {
  try {
    connect()
    return true
  } catch (thrown) {
    if (isOverload(thrown)) return false
    throw thrown
  }
}

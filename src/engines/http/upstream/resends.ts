import { GatewayError } from '../../../ground/errors/index.ts'
import type { UpstreamStream } from '../contracts/upstream.ts'
import { currentLoopTick } from '../time/loop-ticks.ts'

/** Maximum number of times that a request is resent after upstreams have not processed it. */
const maxUnprocessed = 3

/**
 * Decides whether a request is resent on another connection after its connection was lost. A
 * kept-alive connection may close while we write to it, which does no harm if the request is
 * idempotent (RFC 9110 9.2.2, RFC 9112 9.3.1) or cannot have been seen. HTTP/2 tells which requests
 * were not processed: by GOAWAY, or by a reset with REFUSED_STREAM (RFC 9113 8.7).
 */
export class Resends {
  /** The tick in which a kept-alive connection was taken; -1 if that is not relevant. */
  #acquiredTick = -1
  #hasReplacedKept = false
  #unprocessed = 0

  /** Called when a new attempt begins. */
  reset(): void {
    this.#hasReplacedKept = false
    this.#unprocessed = 0
  }

  /** Called when a stream was acquired. `isRisky`: sending the request twice could do harm. */
  onAcquired(stream: UpstreamStream, isRisky: boolean): void {
    this.#acquiredTick = stream.isIdle && isRisky ? currentLoopTick() : -1
  }

  /** Returns whether the request may be resent. `isIdempotent`: the request may be sent twice. */
  admits(lostStream: UpstreamStream, error: GatewayError, isIdempotent: boolean): boolean {
    if (lostStream.isUnprocessed) {
      // New connections respect the limit that is known now, so this does not repeat.
      return lostStream.wasOverLimit || this.#unprocessed++ < maxUnprocessed
    }
    if (this.#hasReplacedKept || !this.#diedIdle(lostStream, error, isIdempotent)) return false
    this.#hasReplacedKept = true
    return true
  }

  #diedIdle(lostStream: UpstreamStream, { code }: GatewayError, isIdempotent: boolean): boolean {
    if (code !== 'upstream_reset' || lostStream.served === 0 || lostStream.hasAnswered) return false
    return isIdempotent || this.#acquiredTick === (lostStream.lostTick ?? currentLoopTick())
  }
}

/** Whether no connection could be made because memory is short. */
export function isOverload(thrown: unknown): thrown is GatewayError {
  return thrown instanceof GatewayError && thrown.code === 'overloaded'
}

/** Calls `connect`. Returns false if memory is too short for a connection. */
export function unlessOverloaded(connect: () => void): boolean {
  try {
    connect()
    return true
  } catch (thrown) {
    if (isOverload(thrown)) return false
    throw thrown
  }
}

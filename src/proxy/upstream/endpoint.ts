import type { UpstreamAddress } from '../../engine/sockets/upstream-address.ts'
import { GatewayError } from '../../errors/index.ts'
import type { RequestCap, RequestShare } from './request-cap.ts'

/** Weight of the latest observation in averages. */
const smoothing = 0.3
/** Failed answers in a row after which an endpoint is left out for a while. */
const failureLimit = 5
/** Milliseconds that an endpoint is left out, times how often in a row it was. */
const baseEjectionMs = 3_000
const longestEjectionMs = 60_000
/** What an endpoint may ask for in Retry-After. */
const longestRetryAfterMs = 300_000

/** What became of one attempt. */
export type AttemptOutcome =
  | { readonly kind: 'answered'; readonly latencyMs: number }
  /** It answered, and the answer says that it could not serve. */
  | { readonly kind: 'failed'; readonly retryAfterMs: number }
  /** No connection, or none that lasted until a response. */
  | { readonly kind: 'unreachable' }

/** One address of a Service port, with what decides between it and others. */
export class UpstreamEndpoint {
  readonly address: UpstreamAddress
  /** Requests that this thread has sent to it and that are not over. */
  outstanding = 0
  /** Of all workers, where they have a limit together; absent before the first request. */
  #share: RequestShare | undefined
  #hasLooked = false
  /** Average of successes (1) and failures (0). */
  #health = 1
  /** Average over successes. */
  #latencyMs = 0
  #failuresInARow = 0
  #ejectionsInARow = 0
  /** In milliseconds of the clock that `isEjected` is asked with; 0: it is in use. */
  #ejectedUntil = 0

  constructor(address: UpstreamAddress) {
    this.address = address
  }

  /** Requests that are under way, as far as this thread can see. */
  get load(): number {
    return this.#share?.total ?? this.outstanding
  }

  /** A request is about to be sent. @throws GatewayError `overloaded` where that is one too many */
  begin(cap: RequestCap | undefined): void {
    if (cap !== undefined && !this.#takeShare(cap)) throw this.overload()
    this.outstanding++
  }

  #takeShare(cap: RequestCap): boolean {
    if (!this.#hasLooked) this.#share = cap.shareOf(this.address.label ?? this.address.pool)
    this.#hasLooked = true
    return this.#share?.take(cap.most) ?? this.outstanding < cap.most
  }

  /** A request that `begin` let through is over. */
  end(): void {
    this.outstanding--
    this.#share?.giveBack()
  }

  overload(): GatewayError {
    const { label } = this.address
    return new GatewayError('overloaded', `${label} has ${this.load} requests under way`)
  }

  /** Higher is better: healthy, quick, and with little to do. */
  get score(): number {
    return this.#health / (1 + this.#latencyMs * (1 + 0.1 * this.outstanding))
  }

  /** Is it left out for now? Cheap where it never was. */
  isEjected(now: () => number): boolean {
    if (this.#ejectedUntil === 0) return false
    if (this.#ejectedUntil > now()) return true
    this.#ejectedUntil = 0
    return false
  }

  /** Learns from an attempt. True where that puts the endpoint out of use. */
  record(outcome: AttemptOutcome, now: () => number): boolean {
    if (outcome.kind === 'answered') {
      this.#health += smoothing * (1 - this.#health)
      const { latencyMs } = outcome
      const before = this.#latencyMs === 0 ? latencyMs : this.#latencyMs
      this.#latencyMs = before + smoothing * (latencyMs - before)
      this.#failuresInARow = 0
      this.#ejectionsInARow = 0
      return false
    }
    this.#health -= smoothing * this.#health
    this.#failuresInARow++
    if (outcome.kind === 'failed' && outcome.retryAfterMs > 0) {
      return this.#eject(Math.min(outcome.retryAfterMs, longestRetryAfterMs), now)
    }
    const isDown = outcome.kind === 'unreachable' || this.#failuresInARow >= failureLimit
    if (!isDown) return false
    const ms = Math.min(baseEjectionMs * (this.#ejectionsInARow + 1), longestEjectionMs)
    return this.#eject(ms, now)
  }

  #eject(ms: number, now: () => number): boolean {
    // Requests that were under way together fail together: that is one reason, not many.
    if (this.isEjected(now)) return false
    this.#ejectionsInARow++
    this.#ejectedUntil = now() + ms
    return true
  }
}

/** The address of a plain connection; everything that goes there can share one pool. */
export function plainAddress(host: string, port: number): UpstreamAddress {
  const label = addressText(host, port)
  return { host, port, pool: label, label }
}

/** `host:port`, with brackets around an IPv6 address. */
export function addressText(host: string, port: number): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}

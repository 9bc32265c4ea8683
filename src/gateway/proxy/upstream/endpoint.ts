// The global `performance` is a getter, which is slower.
import { performance } from 'node:perf_hooks'
import type { UpstreamAddress } from '../../../engines/http/sockets/upstream-address.ts'
import { GatewayError } from '../../../ground/errors/index.ts'
import type { CheckedHealth, EvictionRules } from '../../../ground/exchange/connection.ts'
import { endpointOfSession } from './rendezvous.ts'
import type { RequestCap, RequestShare } from './request-cap.ts'

/** Weight of the latest observation in moving averages. */
const smoothing = 0.3
/** Number of consecutive failed responses after which an endpoint is ejected. */
const failureLimit = 5
/** Duration of the first ejection. It is multiplied by the number of consecutive ejections. */
const baseEjectionMs = 3_000
const maxEjectionMs = 60_000
/** Maximum Retry-After of an endpoint. Longer times are cut to it. */
const maxRetryAfterMs = 300_000

/** Share of its requests that an endpoint gets at the beginning of a slow start. */
const minWarmth = 0.1

/** The result of one attempt for the health of an endpoint. */
export type AttemptOutcome =
  | { readonly kind: 'answered'; readonly latencyMs: number }
  /** The response was an error. */
  | { readonly kind: 'failed'; readonly retryAfterMs: number }
  /** There was no connection, or it broke before the response. */
  | { readonly kind: 'unreachable' }

/** Returns the outcome of an attempt that failed with an error of the upstream. */
export function outcomeOfError({ code }: GatewayError): AttemptOutcome {
  // A timeout counts as a failed response, because a slow endpoint is still reachable.
  const isSlow = code === 'route_timeout' || code === 'upstream_timeout'
  return isSlow ? { kind: 'failed', retryAfterMs: 0 } : { kind: 'unreachable' }
}

/** One address of a backend, with its load and health. */
export class UpstreamEndpoint {
  readonly address: UpstreamAddress
  /** Number of concurrent requests of this thread. */
  outstanding = 0
  /** Counter of all workers, if requests are limited; undefined before the first request. */
  #share: RequestShare | undefined
  #hasLooked = false
  /** Moving average of successes (1) and failures (0). */
  #health = 1
  /** Moving average of the latency of successful responses. */
  #latencyMs = 0
  #failuresInARow = 0
  #ejectionsInARow = 0
  /** When the ejection ends, by the clock that is passed to `isEjected`; 0 if the endpoint is not ejected. */
  #ejectedUntil = 0
  /** When the endpoint was first considered, or its last ejection ended; undefined before that. */
  #usableSince: number | undefined

  constructor(address: UpstreamAddress) {
    this.address = address
  }

  /** Number of concurrent requests: of all workers if requests are limited, otherwise of this thread. */
  get load(): number {
    return this.#share?.total ?? this.outstanding
  }

  /** Counts a request that is about to be sent. @throws GatewayError `overloaded` */
  begin(cap: RequestCap | undefined): void {
    if (cap !== undefined && !this.#takeShare(cap)) throw this.overload()
    this.outstanding++
  }

  #takeShare(cap: RequestCap): boolean {
    if (!this.#hasLooked) this.#share = cap.shareOf(this.address.label ?? this.address.pool)
    this.#hasLooked = true
    return this.#share?.take(cap.most) ?? this.outstanding < cap.most
  }

  /** Ends a request that `begin` has counted. */
  end(): void {
    this.outstanding--
    this.#share?.giveBack()
  }

  overload(): GatewayError {
    const { label } = this.address
    return new GatewayError('overloaded', `${label} has ${this.load} requests under way`)
  }

  /**
   * The score for choosing between endpoints. Healthy and fast endpoints with few requests have a high
   * score.
   */
  get score(): number {
    return this.#health / (1 + this.#latencyMs * (1 + 0.1 * this.outstanding))
  }

  /** Returns whether the endpoint is ejected. The clock is not read for endpoints that were never ejected. */
  isEjected(now: () => number): boolean {
    if (this.#ejectedUntil === 0) return false
    if (this.#ejectedUntil > now()) return true
    this.#ejectedUntil = 0
    this.#usableSince = undefined
    return false
  }

  /** Begins the slow start again. Called when active health checks find that the endpoint is healthy again. */
  returned(): void {
    this.#usableSince = undefined
  }

  /** Returns the part of the slow start that has passed, from 0.1 to 1, as the share of requests that the endpoint gets. */
  warmth(now: () => number, slowStartMs: number): number {
    const at = now()
    this.#usableSince ??= at
    return Math.min(1, Math.max(minWarmth, (at - this.#usableSince) / slowStartMs))
  }

  /** Records the outcome of an attempt. Returns true if that ejects the endpoint. */
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
      return this.#eject(Math.min(outcome.retryAfterMs, maxRetryAfterMs), now)
    }
    const isDown = outcome.kind === 'unreachable' || this.#failuresInARow >= failureLimit
    if (!isDown) return false
    const ms = Math.min(baseEjectionMs * (this.#ejectionsInARow + 1), maxEjectionMs)
    return this.#eject(ms, now)
  }

  /** Records a result by the rules of a policy. Returns true if it ejects the endpoint. */
  judge(
    isHealthy: boolean,
    latencyMs: number,
    eviction: EvictionRules | undefined,
    now: () => number,
  ): boolean {
    if (isHealthy) return this.record({ kind: 'answered', latencyMs }, now)
    this.#health -= smoothing * this.#health
    this.#failuresInARow++
    if (eviction === undefined || !this.#isBelow(eviction)) return false
    const { durationMs, restoreHealth } = eviction
    const ms = Math.min(durationMs * (this.#ejectionsInARow + 1), maxRetryAfterMs)
    const isEjected = this.#eject(ms, now)
    if (isEjected && restoreHealth !== undefined) this.#health = restoreHealth / 100
    return isEjected
  }

  #isBelow({ consecutiveFailures, healthThreshold }: EvictionRules): boolean {
    if (consecutiveFailures === undefined && healthThreshold === undefined) return true
    return (
      this.#failuresInARow >= (consecutiveFailures ?? Number.POSITIVE_INFINITY) ||
      this.#health * 100 < (healthThreshold ?? 0)
    )
  }

  #eject(ms: number, now: () => number): boolean {
    // If concurrent requests fail together, only the first one ejects the endpoint.
    if (this.isEjected(now)) return false
    this.#ejectionsInARow++
    this.#ejectedUntil = now() + ms
    return true
  }
}

/** Makes the address of plaintext connections, which share one connection pool. */
export function plainAddress(host: string, port: number): UpstreamAddress {
  const label = addressText(host, port)
  return { host, port, pool: label, label }
}

/** Returns the address of another port of a host. Connections are made by way of the same proxy. */
export function atPort({ host, pool, via }: UpstreamAddress, port: number): UpstreamAddress {
  const plain = plainAddress(host, port)
  return via === undefined ? plain : { ...plain, pool: `${pool}|port ${port}`, via }
}

/** Writes `host:port`, with brackets around an IPv6 address. */
export function addressText(host: string, port: number): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}

/** Returns the time of the monotonic clock, in milliseconds. */
export const now = (): number => performance.now()

export interface Chance {
  /** Returns random numbers, uniform in [0, 1). */
  readonly random: () => number
  /** Returns the time of a monotonic clock, in milliseconds. */
  readonly now: () => number
  /** Maximum number of concurrent requests to one endpoint; no limit if omitted. */
  readonly most?: number | undefined
  readonly panicPercent?: number | undefined
  readonly slowStartMs?: number | undefined
  /** Results of active health checks, by endpoint. */
  readonly checked?: WeakMap<object, CheckedHealth> | undefined
}

/** The endpoints of one port of a backend. */
export interface EndpointSet {
  /** Endpoints near the proxy; all endpoints if none is near or if the locality is unknown. */
  readonly preferred: readonly UpstreamEndpoint[]
  readonly all: readonly UpstreamEndpoint[]
}

/**
 * Chooses the better of two random usable endpoints. Near endpoints come first. If no endpoint is usable, it
 * chooses any, because trying is better than refusing. `avoid` is an endpoint that has just failed. It is
 * only chosen if there is no other.
 */
export function chooseEndpoint(
  { preferred, all }: EndpointSet,
  chance: Chance,
  avoid?: UpstreamEndpoint,
): UpstreamEndpoint | undefined {
  if (isPanic(all, chance)) return randomOf(all, chance.random)
  const near = betterOfTwo(preferred, chance)
  if (near === undefined || (near !== avoid && isUsable(near, chance))) return near
  for (const group of [preferred, all]) {
    const usable = group.filter((one) => one !== avoid && isUsable(one, chance))
    if (usable.length > 0) return betterOfTwo(usable, chance)
  }
  const others = all.filter((one) => one !== avoid)
  return betterOfTwo(others.length > 0 ? others : all, chance)
}

/** Returns whether an endpoint was ejected, or fails its active health checks. */
function isOut(one: UpstreamEndpoint, { now, checked }: Chance): boolean {
  return one.isEjected(now) || checked?.get(one)?.isDown === true
}

/** Returns whether fewer endpoints are usable than the panic threshold. */
function isPanic(all: readonly UpstreamEndpoint[], chance: Chance): boolean {
  const { panicPercent } = chance
  if (panicPercent === undefined) return false
  const usable = all.reduce((sum, one) => (isOut(one, chance) ? sum : sum + 1), 0)
  return usable * 100 < panicPercent * all.length
}

/**
 * Chooses the endpoint of a session among the usable ones, near ones first. Undefined if none is usable. `avoid` is an
 * endpoint that has just failed.
 */
export function chooseBySession(
  { preferred, all }: EndpointSet,
  session: string,
  chance: Chance,
  avoid?: UpstreamEndpoint,
): UpstreamEndpoint | undefined {
  const isCandidate = (one: UpstreamEndpoint) => one !== avoid && isUsable(one, chance)
  const near = endpointOfSession(preferred, session, isCandidate)
  return near ?? (preferred === all ? undefined : endpointOfSession(all, session, isCandidate))
}

/** Returns the endpoint at an address, if it exists and is usable. */
export function endpointAt(
  { all }: EndpointSet,
  host: string,
  port: number | undefined,
  chance: Chance,
): UpstreamEndpoint | undefined {
  const found = all.find(({ address }) => address.host === host && address.port === port)
  return found !== undefined && isUsable(found, chance) ? found : undefined
}

function isUsable(one: UpstreamEndpoint, chance: Chance): boolean {
  return one.load < (chance.most ?? Number.POSITIVE_INFINITY) && !isOut(one, chance)
}

const randomOf = (endpoints: readonly UpstreamEndpoint[], random: () => number) =>
  endpoints[Math.floor(random() * endpoints.length)]

/**
 * Chooses by the power of two choices. The result is nearly as even as comparing all endpoints, and workers
 * do not all choose the same endpoint.
 */
export function betterOfTwo(
  endpoints: readonly UpstreamEndpoint[],
  chance: Chance,
): UpstreamEndpoint | undefined {
  const { random, now, slowStartMs } = chance
  const count = endpoints.length
  if (count < 2) return endpoints[0]
  // Both may be the same endpoint. So even the worst endpoint is tried now and then, and can recover.
  const [a, b] = [randomOf(endpoints, random), randomOf(endpoints, random)]
  if (a === undefined || b === undefined) return a ?? b
  if (isOut(a, chance) !== isOut(b, chance)) return isOut(a, chance) ? b : a
  const [better, other] = b.score > a.score ? [b, a] : [a, b]
  if (slowStartMs === undefined || better.warmth(now, slowStartMs) > random()) return better
  const instead = other === better ? randomOf(endpoints, random) : other
  return instead === undefined || isOut(instead, chance) ? better : instead
}

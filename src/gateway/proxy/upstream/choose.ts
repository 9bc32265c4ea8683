/** Chooses the endpoint of a request. */
// The global `performance` is a getter, which is slower.
import { performance } from 'node:perf_hooks'
import type { UpstreamEndpoint } from './endpoint.ts'

/** Returns the time of the monotonic clock, in milliseconds. */
export const now = (): number => performance.now()

export interface Chance {
  /** Returns random numbers, uniform in [0, 1). */
  readonly random: () => number
  /** Returns the time of a monotonic clock, in milliseconds. */
  readonly now: () => number
  /** Maximum number of concurrent requests to one endpoint; no limit if omitted. */
  readonly most?: number
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
  const near = betterOfTwo(preferred, chance)
  if (near === undefined || (near !== avoid && isUsable(near, chance))) return near
  for (const group of [preferred, all]) {
    const usable = group.filter((one) => one !== avoid && isUsable(one, chance))
    if (usable.length > 0) return betterOfTwo(usable, chance)
  }
  const others = all.filter((one) => one !== avoid)
  return betterOfTwo(others.length > 0 ? others : all, chance)
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

function isUsable(
  one: UpstreamEndpoint,
  { now, most = Number.POSITIVE_INFINITY }: Chance,
): boolean {
  return one.load < most && !one.isEjected(now)
}

const randomOf = (endpoints: readonly UpstreamEndpoint[], random: () => number) =>
  endpoints[Math.floor(random() * endpoints.length)]

/**
 * Chooses by the power of two choices. The result is nearly as even as comparing all endpoints, and workers
 * do not all choose the same endpoint.
 */
export function betterOfTwo(
  endpoints: readonly UpstreamEndpoint[],
  { random, now }: Chance,
): UpstreamEndpoint | undefined {
  const count = endpoints.length
  if (count < 2) return endpoints[0]
  // Both may be the same endpoint. So even the worst endpoint is tried now and then, and can recover.
  const [a, b] = [randomOf(endpoints, random), randomOf(endpoints, random)]
  if (a === undefined || b === undefined) return a ?? b
  if (a.isEjected(now) !== b.isEjected(now)) return a.isEjected(now) ? b : a
  return b.score > a.score ? b : a
}

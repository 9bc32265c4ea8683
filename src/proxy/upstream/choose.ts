/** Which endpoint a request goes to. */
// The global is looked up by an accessor each time.
import { performance } from 'node:perf_hooks'
import type { UpstreamEndpoint } from './endpoint.ts'

/** Milliseconds of a clock that never goes back. */
export const now = (): number => performance.now()

export interface Chance {
  /** Uniform in [0, 1). */
  readonly random: () => number
  /** Milliseconds of a clock that never goes back. */
  readonly now: () => number
  /** Most requests that one endpoint may have under way; no limit where absent. */
  readonly most?: number
}

/** Endpoints of one port. */
export interface EndpointSet {
  /** Those that are near, or all where nobody knows or none is. */
  readonly preferred: readonly UpstreamEndpoint[]
  readonly all: readonly UpstreamEndpoint[]
}

/**
 * The better of two random endpoints that are in use, near ones first; where all are left out, any
 * of them, since trying is better than refusing. Undefined where there is none. `avoid`: failed just
 * now; taken only where there is no other.
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

/** The endpoint at an address, where it is there and in use. */
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

const drawn = (endpoints: readonly UpstreamEndpoint[], random: () => number) =>
  endpoints[Math.floor(random() * endpoints.length)]

/**
 * Power of two choices: nearly as even as asking all endpoints, at a constant cost, and workers that
 * cannot see each other's counts do not herd.
 */
export function betterOfTwo(
  endpoints: readonly UpstreamEndpoint[],
  { random, now }: Chance,
): UpstreamEndpoint | undefined {
  const count = endpoints.length
  if (count < 2) return endpoints[0]
  // Both are drawn from all: now and then even the worst meets itself, is asked, and may show that it
  // has become better. Otherwise one slow answer, such as its first, would keep it idle for good.
  const [a, b] = [drawn(endpoints, random), drawn(endpoints, random)]
  if (a === undefined || b === undefined) return a ?? b
  if (a.isEjected(now) !== b.isEjected(now)) return a.isEjected(now) ? b : a
  return b.score > a.score ? b : a
}

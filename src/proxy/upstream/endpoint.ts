import type { UpstreamAddress } from '../engine/types.ts'

/** One address of a Service port, with what decides between it and others. */
export interface UpstreamEndpoint {
  readonly address: UpstreamAddress
  /** Requests that were sent to it and are not over. */
  outstanding: number
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

/**
 * Power of two choices: of two random endpoints the one with fewer requests under way. Nearly as
 * even as asking all of them, at a constant cost, and workers that cannot see each other's counts
 * do not herd. Undefined where there is none.
 */
export function chooseEndpoint(
  endpoints: readonly UpstreamEndpoint[],
  random: () => number,
): UpstreamEndpoint | undefined {
  const count = endpoints.length
  if (count < 2) return endpoints[0]
  const first = Math.floor(random() * count)
  // The second is drawn from the others, so that two endpoints are always both looked at.
  const second = (first + 1 + Math.floor(random() * (count - 1))) % count
  const [a, b] = [endpoints[first], endpoints[second]]
  if (a === undefined || b === undefined) return a ?? b
  return b.outstanding < a.outstanding ? b : a
}

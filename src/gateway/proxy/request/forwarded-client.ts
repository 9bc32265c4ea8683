/**
 * Finds the client of a request that came through trusted proxies. Each proxy appends the address of its
 * peer to X-Forwarded-For. So the list is read from its end, as long as the sender of an entry is trusted
 * (RFC 7239 8.1).
 */
import { isIP } from 'node:net'
import { shortestAddress } from '../../../engines/http/sockets/canonical-address.ts'
import type { Peer, RequestHead } from '../../../ground/exchange/exchange.ts'

/** Maximum number of hops that are read, because clients can send long lists. */
const maxHops = 32

/**
 * Returns the last valid hop before the trusted proxies; undefined if the peer is not trusted or the last
 * hop is invalid.
 */
export function forwardedClient(
  { headers }: RequestHead,
  peer: Peer,
  isTrusted: (address: string) => boolean,
): Peer | undefined {
  if (!isTrusted(peer.address)) return undefined
  const hops = headers.getAll('x-forwarded-for').join(',').split(',').slice(-maxHops)
  let client: Peer | undefined
  for (const hop of hops.reverse()) {
    const next = readHop(hop.trim())
    if (next === undefined) break
    client = next
    if (!isTrusted(next.address)) break
  }
  return client
}

/**
 * Returns the entry of X-Forwarded-For at a place from its end; undefined if there is none, or if it is invalid. All
 * `hops` proxies are trusted: each one has appended an entry.
 */
export function clientBeforeHops({ headers }: RequestHead, hops: number): Peer | undefined {
  const hop = headers.getAll('x-forwarded-for').join(',').split(',').at(-hops)
  return hop === undefined ? undefined : readHop(hop.trim())
}

/** Parses an IP address with or without a port. Returns undefined for other texts. */
function readHop(text: string): Peer | undefined {
  if (isIP(text) !== 0) return { address: shortestAddress(text), port: 0 }
  const parts = /^(?:\[([0-9A-Fa-f:.]+)\]|([0-9.]+))(?::([0-9]{1,5}))?$/.exec(text)
  const address = parts?.[1] ?? parts?.[2] ?? ''
  const port = Number(parts?.[3] ?? 0)
  if (isIP(address) === 0 || port > 65_535) return undefined
  return { address: shortestAddress(address), port }
}

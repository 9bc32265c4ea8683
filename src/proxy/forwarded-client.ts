/**
 * Whose request it is, where it came through proxies that are trusted: each of them has appended
 * the address that it saw to X-Forwarded-For, so the list is read from its end, as long as the hop
 * that wrote an entry is trusted (RFC 7239 8.1 says why not from its beginning).
 */
import { isIP } from 'node:net'
import { shortestAddress } from '../engine/sockets/canonical-address.ts'
import type { Peer, RequestHead } from '../exchange/exchange.ts'

/** Hops that are followed; a client can make the list as long as a head may be. */
const mostHops = 32

/**
 * The client before the last trusted proxy; undefined where the peer is not trusted, or tells
 * nothing that can be believed.
 */
export function forwardedClient(
  { headers }: RequestHead,
  peer: Peer,
  isTrusted: (address: string) => boolean,
): Peer | undefined {
  if (!isTrusted(peer.address)) return undefined
  const hops = headers.getAll('x-forwarded-for').join(',').split(',').slice(-mostHops)
  let client: Peer | undefined
  for (const hop of hops.reverse()) {
    const next = readHop(hop.trim())
    if (next === undefined) break
    client = next
    if (!isTrusted(next.address)) break
  }
  return client
}

/** `192.0.2.1`, `2001:db8::1`, both with a port as some proxies write it; undefined for all else. */
function readHop(text: string): Peer | undefined {
  if (isIP(text) !== 0) return { address: shortestAddress(text), port: 0 }
  const parts = /^(?:\[([0-9A-Fa-f:.]+)\]|([0-9.]+))(?::([0-9]{1,5}))?$/.exec(text)
  const address = parts?.[1] ?? parts?.[2] ?? ''
  const port = Number(parts?.[3] ?? 0)
  if (isIP(address) === 0 || port > 65_535) return undefined
  return { address: shortestAddress(address), port }
}

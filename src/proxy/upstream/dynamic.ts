import { lookup as systemLookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { GatewayError } from '../../errors.ts'
import type { UpstreamAddress } from '../engine/types.ts'
import { defaultPort, splitAuthority } from './authority.ts'
import { plainAddress } from './endpoint.ts'

/** Addresses of a host name, in the order in which they are to be tried. */
export type Lookup = (host: string) => Promise<readonly string[]>

export const lookupBySystem: Lookup = async (host) => {
  const found = await systemLookup(host, { all: true })
  return found.map(({ address }) => address)
}

/**
 * Where a dynamic forward proxy sends a request, best first: the host and port of its authority, resolved here
 * so that the address that was checked is the address that is connected to. Rejects with
 * `bad_request` (no host), `dns_failed`, or `destination_refused` where any address is refused: a
 * name that mixes refused and allowed addresses is an attempt to slip through.
 */
export async function resolveAuthority(
  authority: string,
  scheme: 'http' | 'https',
  lookup: Lookup,
  isAllowed: (address: string) => boolean,
): Promise<readonly [UpstreamAddress, ...UpstreamAddress[]]> {
  const target = splitAuthority(authority)
  if (target === undefined) throw new GatewayError('bad_request', 'no host to forward to')
  const port = target.port ?? defaultPort(scheme)
  const addresses = isIP(target.host) === 0 ? await resolve(target.host, lookup) : [target.host]
  if (!addresses.every(isAllowed)) throw new GatewayError('destination_refused')
  const [first, ...others] = addresses.map((address) => plainAddress(address, port))
  if (first === undefined) throw new GatewayError('dns_failed', target.host)
  return [first, ...others]
}

async function resolve(host: string, lookup: Lookup): Promise<readonly string[]> {
  try {
    return await lookup(host)
  } catch (cause) {
    throw new GatewayError('dns_failed', host, cause)
  }
}

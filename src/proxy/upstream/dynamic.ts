import { lookup as systemLookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { GatewayError } from '../../errors.ts'

/** Addresses of a host name, in the order in which they are to be tried. */
export type Lookup = (host: string) => Promise<readonly string[]>

export const lookupBySystem: Lookup = async (host) => {
  const found = await systemLookup(host, { all: true })
  return found.map(({ address }) => address)
}

/**
 * Addresses of a host that a client named, in the order in which they are to be tried; resolved
 * here so that the address that was checked is the address that is connected to. Rejects with
 * `dns_failed`, or `destination_refused` where any address is refused: a name that mixes refused
 * and allowed addresses is an attempt to slip through.
 */
export async function resolveHost(
  host: string,
  lookup: Lookup,
  isAllowed: (address: string) => boolean,
): Promise<readonly [string, ...string[]]> {
  const [first, ...others] = isIP(host) === 0 ? await resolve(host, lookup) : [host]
  if (first === undefined) throw new GatewayError('dns_failed', host)
  if (![first, ...others].every(isAllowed)) throw new GatewayError('destination_refused')
  return [first, ...others]
}

async function resolve(host: string, lookup: Lookup): Promise<readonly string[]> {
  try {
    return await lookup(host)
  } catch (cause) {
    throw new GatewayError('dns_failed', host, cause)
  }
}

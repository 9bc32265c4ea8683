/** One text for one address, so that rules match an address however it was written. */

const mapped = /^::ffff:(?:(\d+\.\d+\.\d+\.\d+)|([0-9a-f]{1,4}):([0-9a-f]{1,4}))$/

/**
 * An address of a socket, which is in its shortest form: one of IPv4 that came to a socket of both
 * families (`::ffff:192.0.2.1`, RFC 4291 2.5.5.2) is `192.0.2.1`.
 */
export function canonicalAddress(address: string): string {
  if (!address.startsWith('::ffff:')) return address
  const [, dotted, high = '', low = ''] = mapped.exec(address) ?? [address, address]
  if (dotted !== undefined) return dotted
  const [first, last] = [Number.parseInt(high, 16), Number.parseInt(low, 16)]
  return [first >> 8, first & 255, last >> 8, last & 255].join('.')
}

/** The same for an address from a configuration; one with a zone stays as it is. */
export function shortestAddress(address: string): string {
  if (!address.includes(':') || address.includes('%')) return address
  return canonicalAddress(new URL(`http://[${address}]`).hostname.slice(1, -1))
}

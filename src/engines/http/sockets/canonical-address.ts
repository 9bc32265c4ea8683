/** Converts addresses to one canonical text, so that rules match an address however it was written. */

const mapped = /^::ffff:(?:(\d+\.\d+\.\d+\.\d+)|([0-9a-f]{1,4}):([0-9a-f]{1,4}))$/

/**
 * Returns the canonical text of a socket's address, which is in its shortest form already. An IPv4
 * address on a socket for both families (`::ffff:192.0.2.1`, RFC 4291 2.5.5.2) becomes `192.0.2.1`.
 */
export function canonicalAddress(address: string): string {
  if (!address.startsWith('::ffff:')) return address
  const [, dotted, high = '', low = ''] = mapped.exec(address) ?? [address, address]
  if (dotted !== undefined) return dotted
  const [first, last] = [Number.parseInt(high, 16), Number.parseInt(low, 16)]
  return [first >> 8, first & 255, last >> 8, last & 255].join('.')
}

/** Returns the canonical text of a configured address; an address with a zone is returned unchanged. */
export function shortestAddress(address: string): string {
  if (!address.includes(':') || address.includes('%')) return address
  return canonicalAddress(new URL(`http://[${address}]`).hostname.slice(1, -1))
}

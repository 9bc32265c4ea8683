/**
 * `example.com.` is the absolute form of the name `example.com`: the same host (RFC 1034 3.1,
 * RFC 3986 3.2.2). The core leaves the dot out where it reads a head (assembly/match/authority.ts);
 * this does the same for texts that are compared elsewhere.
 */

const dot = 0x2e

/**
 * A host name, or `host[:port]`, without the one dot that ends the name. What has none comes back as
 * it is, and so do names that only dots would be left of, which are no names.
 */
export function withoutRootDot(authority: string): string {
  const colon = authority.lastIndexOf(':')
  const end = colon < 0 ? authority.length : colon
  if (end < 2 || authority.charCodeAt(end - 1) !== dot || authority.charCodeAt(end - 2) === dot) {
    return authority
  }
  return authority.slice(0, end - 1) + authority.slice(end)
}

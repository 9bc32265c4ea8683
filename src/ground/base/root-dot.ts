const dot = 0x2e

/**
 * Removes the dot at the end of the name in `host` or `host[:port]`, unless the name ends with two dots or is
 * a dot. `example.com.` is the absolute form of `example.com`, the same host (RFC 1034 3.1, RFC 3986 3.2.2).
 * The core removes the dot when it reads a head (assembly/match/authority.ts).
 */
export function withoutRootDot(authority: string): string {
  const colon = authority.lastIndexOf(':')
  const end = colon < 0 ? authority.length : colon
  if (end < 2 || authority.charCodeAt(end - 1) !== dot || authority.charCodeAt(end - 2) === dot) {
    return authority
  }
  return authority.slice(0, end - 1) + authority.slice(end)
}

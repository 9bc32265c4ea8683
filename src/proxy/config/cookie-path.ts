/** The `Path` of a session's cookie (Gateway API, GEP-1619, Path). */
import type { RouteMatch } from '../../model/resources.ts'

/** Where a client is to send the cookie: to all that the match takes, as far as a prefix can say. */
export function cookiePathOf({ path: { type, value } }: RouteMatch): string {
  if (type === 'RegularExpression') return printable(literalPrefix(value))
  const path = printable(value)
  return type === 'PathPrefix' ? withoutSlash(path) : path
}

/** `/a/` as a prefix takes `/a` too. */
function withoutSlash(path: string): string {
  return path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path
}

/** Whole segments before anything that cannot stand in an attribute (RFC 6265 4.1.1, path-value). */
function printable(path: string): string {
  const end = path.search(/[^!-:<-~]/)
  return end < 0 ? path : segmentsBefore(path, end)
}

/** Whole segments before anything that means something in a pattern. */
function literalPrefix(pattern: string): string {
  const text = pattern.startsWith('^') ? pattern.slice(1) : pattern
  if (text.includes('|')) return '/'
  const special = text.search(/[\\.[\](){}*+?$^]/)
  if (special < 0) return text
  // What is repeated may be absent.
  const isRepeat = '*+?{'.includes(text.charAt(special))
  return segmentsBefore(text, isRepeat ? special - 1 : special)
}

function segmentsBefore(path: string, end: number): string {
  const slash = path.slice(0, Math.max(end, 0)).lastIndexOf('/')
  return slash <= 0 ? '/' : path.slice(0, slash)
}

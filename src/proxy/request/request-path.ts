/**
 * Paths that several servers read in different ways. Routes and expressions compare paths as they are
 * sent; a setting brings them into a normal form (RFC 3986 6.2.2) before, or refuses them.
 */
import { GatewayError } from '../../errors/index.ts'
import type { RequestContext } from './request-context.ts'

export type AmbiguousPaths = 'keep' | 'normalize' | 'refuse'

/** Nearly every path has none of these. */
const suspect = /[%\\]|\/[/.]/

/** @throws GatewayError ambiguous_path */
export function settlePath(context: RequestContext, rule: AmbiguousPaths): void {
  const { request } = context.exchange
  const settled = settledPath(request.path, rule)
  if (settled === undefined) throw new GatewayError('ambiguous_path')
  if (settled === request.path) return
  context.keepOriginal()
  request.path = settled
}

/**
 * The path that routes and policies see; undefined if the request is refused.
 * @param path without the query
 */
export function settledPath(path: string, rule: AmbiguousPaths): string | undefined {
  if (rule === 'keep' || !path.startsWith('/') || !suspect.test(path)) return path
  const normal = normalPath(path)
  if (rule === 'normalize') return normal
  return normal === path && !undecided.test(path) ? path : undefined
}

/** Escaped separators, also twice, and escaped control characters. */
const undecided = /%(?:2f|5c|[01][0-9a-f]|7f|25(?:2e|2f|5c))/i

/**
 * Without dot segments, empty segments and escapes of unreserved characters, and with `/` for `\`.
 * Undefined if none of that settles the path: a dot segment has parameters (`..;a`), or is one to
 * servers that decode `%2F`, or there is an escaped NUL, or a `%` that begins no escape.
 */
function normalPath(path: string): string | undefined {
  if (/%(?![0-9a-f]{2})/i.test(path)) return undefined
  const decoded = path
    .replace(/%([0-9a-f]{2})/gi, (sent, hex: string) => {
      const character = String.fromCharCode(Number.parseInt(hex, 16))
      return /[A-Za-z0-9._~-]/.test(character) ? character : sent
    })
    .replaceAll('\\', '/')
  if (decoded.includes('%00') || hasHiddenDots(decoded)) return undefined
  const kept: string[] = []
  const segments = decoded.split('/')
  for (const segment of segments) {
    if (segment === '..') kept.pop()
    else if (segment !== '.') kept.push(segment)
  }
  const last = segments.at(-1)
  const isFolder = last === '' || last === '.' || last === '..'
  const names = kept.filter((segment) => segment !== '')
  return names.length === 0 ? '/' : `/${names.join('/')}${isFolder ? '/' : ''}`
}

const hasHiddenDots = (path: string): boolean =>
  /(?:\/|%2f|%5c)\.{1,2}(?:;|%3b|%2f|%5c)|(?:%2f|%5c)\.{1,2}(?:\/|$)/i.test(path)

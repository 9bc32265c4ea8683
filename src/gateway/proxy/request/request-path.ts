/**
 * Handles paths that servers may interpret in different ways. Routes and expressions compare paths as they
 * are sent. By a setting, such paths are normalized first (RFC 3986 6.2.2) or refused.
 */
import { GatewayError } from '../../../ground/errors/index.ts'
import type { RequestContext } from './request-context.ts'

export type AmbiguousPaths = 'keep' | 'normalize' | 'refuse'

/** Matches every path that may be ambiguous. Most paths do not match and need no further check. */
const maybeAmbiguous = /[%\\]|\/[/.]/

/** Applies the setting to the path of a request. @throws GatewayError ambiguous_path */
export function settlePath(context: RequestContext, rule: AmbiguousPaths): void {
  const { request } = context.exchange
  const settled = settledPath(request.path, rule)
  if (settled === undefined) throw new GatewayError('ambiguous_path')
  if (settled === request.path) return
  context.keepOriginal()
  request.path = settled
}

/** Returns the path that routes and policies see, without the query; undefined if it is refused. */
export function settledPath(path: string, rule: AmbiguousPaths): string | undefined {
  if (rule === 'keep' || !path.startsWith('/') || !maybeAmbiguous.test(path)) return path
  const normal = normalPath(path)
  if (rule === 'normalize') return normal
  return normal === path && !ambiguousEscape.test(path) ? path : undefined
}

/** Matches escaped separators, also if they are escaped twice, and escaped control characters. */
const ambiguousEscape = /%(?:2f|5c|[01][0-9a-f]|7f|25(?:2e|2f|5c))/i

/**
 * Normalizes a path: removes dot segments, empty segments and escapes of unreserved characters, and replaces
 * `\` by `/`. Returns undefined if the path stays ambiguous. That is so if a dot segment has parameters
 * (`..;a`) or appears only when `%2F` is decoded, if there is an escaped NUL, or if a `%` begins no escape.
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

/**
 * The precedence of the Gateway API in its simplest form: it filters the matching routes, sorts them
 * and takes the first one. The route table of the core must agree with it.
 */
import type { AssignedRequest, NamedMatch, RouteSpec } from '../../src/engines/core/index.ts'

export interface Listener {
  readonly hostname: string | undefined
  readonly scope: number
}

/** 0: no match; else larger is more specific. */
function hostRank(hostname: string | undefined, host: string): number {
  if (hostname === undefined || hostname === '') return 1
  const own = hostname.toLowerCase()
  if (!own.startsWith('*.')) return own === host ? 1000 : 0
  const suffix = own.slice(1)
  return host.length > suffix.length && host.endsWith(suffix) ? 1 + suffix.length : 0
}

function hostOf(request: AssignedRequest): string {
  return request.authority
    .replace(/:\d*$/, '')
    .replace(/(?<=[^.])\.$/, '')
    .toLowerCase()
}

const trimSlashes = (path: string) => path.replace(/\/+$/, '')

/** 0: no match; exact above prefix above regex, longer above shorter. */
function pathRank({ type, value }: RouteSpec['path'], path: string): number {
  if (type === 'exact') return path === value ? 3e6 : 0
  if (type === 'regex') return new RegExp(`^(?:${value})$`, 's').test(path) ? 1 + value.length : 0
  const prefix = trimSlashes(value)
  const matches =
    path === prefix || (prefix === '' && path === '*') || path.startsWith(`${prefix}/`)
  return matches ? 2e6 + prefix.length : 0
}

function isValueMatch(match: NamedMatch, value: string): boolean {
  return match.type === 'exact'
    ? value === match.value
    : new RegExp(`^(?:${match.value})$`, 's').test(value)
}

function isHeaderMatch(match: NamedMatch, { headers }: AssignedRequest): boolean {
  return [...headers].some(
    ([name, value]) =>
      name.toLowerCase() === match.name.toLowerCase() && isValueMatch(match, value),
  )
}

function isQueryMatch(match: NamedMatch, { query }: AssignedRequest): boolean {
  const value = new URLSearchParams(query ?? '').get(match.name)
  return value !== null && isValueMatch(match, value)
}

function isMatch(route: RouteSpec, request: AssignedRequest): boolean {
  if (route.method !== undefined && route.method !== request.method) return false
  if (hostRank(route.hostname, hostOf(request)) === 0) return false
  if (pathRank(route.path, request.path === '' ? '/' : request.path) === 0) return false
  if (!(route.headers ?? []).every((match) => isHeaderMatch(match, request))) return false
  return (route.query ?? []).every((match) => isQueryMatch(match, request))
}

function compareRoutes(a: RouteSpec, b: RouteSpec, request: AssignedRequest): number {
  const host = hostOf(request)
  const path = request.path === '' ? '/' : request.path
  return (
    hostRank(b.hostname, host) - hostRank(a.hostname, host) ||
    pathRank(b.path, path) - pathRank(a.path, path) ||
    Number(b.method !== undefined) - Number(a.method !== undefined) ||
    (b.headers ?? []).length - (a.headers ?? []).length ||
    (b.query ?? []).length - (a.query ?? []).length ||
    a.createdAt - b.createdAt ||
    Buffer.compare(Buffer.from(a.name), Buffer.from(b.name)) ||
    a.ruleIndex - b.ruleIndex ||
    a.matchIndex - b.matchIndex
  )
}

/** The id of the route, or the reason why none matches. */
export function referenceMatch(
  listeners: readonly Listener[],
  routes: readonly RouteSpec[],
  request: AssignedRequest,
): number | 'NO_LISTENER' | 'NO_ROUTE' {
  const host = hostOf(request)
  const [listener] = listeners
    .filter(({ hostname }) => hostRank(hostname, host) > 0)
    .sort((a, b) => hostRank(b.hostname, host) - hostRank(a.hostname, host))
  if (listener === undefined) return 'NO_LISTENER'
  const [winner] = routes
    .filter((route) => route.scope === listener.scope && isMatch(route, request))
    .sort((a, b) => compareRoutes(a, b, request))
  return winner?.id ?? 'NO_ROUTE'
}

import type { RouteFilter } from '../../model/resources.ts'
import { defaultPort, joinAuthority, splitAuthority } from '../upstream/authority.ts'
import { modifyPath } from './path.ts'

export type RedirectFilter = Extract<RouteFilter, { type: 'redirect' }>

/** What a redirect needs to know of the request. */
interface RedirectedRequest {
  readonly scheme: 'http' | 'https'
  readonly authority: string
  readonly path: string
  readonly query: string | undefined
}

/**
 * Location of a Gateway API HTTPRequestRedirectFilter; undefined where the path cannot be made or
 * the request has no host to go back to. The port is the filter's, else the well-known port of the
 * filter's scheme, else the listener's; it is not printed where the scheme implies it.
 */
export function redirectLocation(
  redirect: RedirectFilter,
  request: RedirectedRequest,
  listenerPort: number,
  prefix: string | undefined,
): string | undefined {
  const scheme = redirect.scheme ?? request.scheme
  const host = redirect.hostname ?? splitAuthority(request.authority)?.host
  const path =
    redirect.path === undefined ? request.path : modifyPath(request.path, redirect.path, prefix)
  if (host === undefined || path === undefined) return undefined
  const port = redirect.port ?? (redirect.scheme === undefined ? listenerPort : defaultPort(scheme))
  const query = request.query === undefined ? '' : `?${request.query}`
  return `${scheme}://${joinAuthority(host, port, scheme)}${path === '*' ? '' : path}${query}`
}

import { defaultPort, joinAuthority, splitAuthority } from '../upstream/authority.ts'
import type { RedirectFilter } from './compile.ts'
import { modifyPath } from './edit.ts'

interface RedirectedRequest {
  readonly scheme: 'http' | 'https'
  readonly authority: string
  readonly path: string
  readonly query: string | undefined
}

/**
 * Returns the Location of a Gateway API HTTPRequestRedirectFilter; undefined if there is no valid path or
 * host. The port is the filter's or, if it has none, the default port of the filter's scheme. If the filter
 * sets neither, it is the listener's port. The default port of the scheme is omitted.
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

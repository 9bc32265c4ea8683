/**
 * Follows redirects of a server to another of its paths (307 or 308, which keep method and body, RFC 9110
 * section 15.4.8). Many frameworks redirect `/mcp` to `/mcp/`. Redirects to other hosts are not followed.
 */

import { BoundedMap } from '../../../../../ground/base/bounded-map.ts'
import type { HeaderFields } from '../../../../../ground/exchange/exchange.ts'
import { TargetMemory } from '../target/targets.ts'
import type { ReadyRequest } from './target-request.ts'

/** Maximum number of clients of a target whose paths are remembered. */
const maxClients = 1_000
/**
 * Paths learned from redirects, by client, because a server may redirect each client to another path. Dropped if
 * the configuration changes or the path is not found.
 */
export const redirectedPaths = new TargetMemory(() => new BoundedMap<string, string>(maxClients))

/** Returns the new path if the response is a redirect to the same server. */
export function redirectPath(
  status: number,
  headers: HeaderFields,
  request: Pick<ReadyRequest, 'url'>,
): string | undefined {
  if (status !== 307 && status !== 308) return undefined
  const location = headers.get('location')
  const asked = request.url
  if (location === undefined || !URL.canParse(location, asked)) return undefined
  const from = new URL(asked)
  const to = new URL(location, from)
  const path = `${to.pathname}${to.search}`
  return to.host === from.host && path !== `${from.pathname}${from.search}` ? path : undefined
}

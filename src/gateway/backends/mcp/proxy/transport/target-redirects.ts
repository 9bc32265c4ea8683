/**
 * Follows redirects of a server to another of its paths (307 or 308, which keep method and body, RFC 9110
 * section 15.4.8). Many frameworks redirect `/mcp` to `/mcp/`. Redirects to other hosts are not followed.
 */
import type { HeaderFields } from '../../../../../ground/exchange/exchange.ts'
import type { McpTarget } from '../../../../../ground/model/mcp-targets.ts'
import type { McpExchange } from '../exchange/mcp-exchange.ts'
import type { ReadyRequest } from './target-request.ts'

/**
 * Paths learned from redirects, by client, because a server may redirect each client to another path. Dropped if
 * the configuration changes or the path is not found.
 */
const paths = new WeakMap<McpTarget, Map<string, string>>()
/** Maximum number of clients of a target whose paths are remembered. */
const maxClients = 1_000

/** Returns the path to which the target has redirected the client; undefined if it has not. */
export function learnedPath(target: McpTarget, client: Identified): string | undefined {
  return paths.get(target)?.get(client.identity)
}

/** Called when the target has redirected a message of the client to the path. */
export function learnPath(target: McpTarget, client: Identified, path: string): void {
  const all = paths.get(target) ?? new Map<string, string>()
  const [oldest] = all.size >= maxClients ? all.keys() : []
  if (oldest !== undefined) all.delete(oldest)
  paths.set(target, all.set(client.identity, path))
}

/** Called when the target does not know the path any more. */
export function forgetPath(target: McpTarget, client: Identified): void {
  paths.get(target)?.delete(client.identity)
}

type Identified = Pick<McpExchange, 'identity'>

/** Returns the new path if the response is a redirect to the same server. */
export function namedPath(
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

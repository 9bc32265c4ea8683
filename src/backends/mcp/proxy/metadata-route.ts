/** Routes of the documents from which MCP clients learn where to get tokens. */

import type { RequestContext } from '../../../proxy/request/request-context.ts'
import { rerouteTo } from '../../../proxy/request/route.ts'
import type { GatewayRuntime } from '../../../proxy/request/runtime.ts'
import { readMetadataPath } from '../auth/well-known.ts'
import type { McpBackends } from './hub.ts'

/**
 * Such a document lies outside of the path that it is about (RFC 9728 section 3.1), so a route for
 * `/mcp` does not match it, and one for everything else may. The route of the MCP server takes it,
 * unless another one is written for such paths in particular.
 */
export function findMetadataRoute(
  context: RequestContext,
  runtime: GatewayRuntime,
  backends: McpBackends,
): void {
  if (backends.size === 0) return
  const asked = readMetadataPath(context.exchange.request.path)
  if (asked === undefined || isWrittenForIt(context)) return
  const path = asked.resource === '' ? '/' : asked.resource
  rerouteTo(context, runtime, { method: 'POST', path }, ({ rule }) =>
    rule.backends.some(
      ({ target, name }) => target.type === 'backend' && backends.find(name) !== undefined,
    ),
  )
}

/** By a whole path, a regular expression, or a prefix below which such documents lie. */
function isWrittenForIt({ placement, prefix }: RequestContext): boolean {
  return placement !== undefined && (prefix === undefined || prefix.startsWith('/.well-known'))
}

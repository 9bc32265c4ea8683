/** GatewayBackends of MCP servers. */
import type { CompiledRule } from '../../../proxy/config/rules.ts'
import type { BackendKind } from '../../../proxy/request/backend-kind.ts'
import type { RequestContext } from '../../../proxy/request/request-context.ts'
import { rerouteTo } from '../../../proxy/request/route.ts'
import type { GatewayRuntime } from '../../../proxy/request/runtime.ts'
import { metadataPrefix, readMetadataPath } from '../auth/oauth-metadata.ts'
import { nameMessage } from './client/message-names.ts'
import { McpCall } from './mcp-call.ts'
import { judgeUse } from './recorded-use.ts'
import { type McpBackends, McpSharedState } from './session/shared-state.ts'

export function mcpKind(runtime: GatewayRuntime): BackendKind {
  const shared = new McpSharedState(runtime)
  const { backends } = shared
  return {
    type: 'mcp',
    protocol: 'mcp',
    onlyFor: 'only requests of MCP clients can go there',
    set: backends.set,
    remove: backends.remove,
    begin: (context) => new McpCall(context, runtime, shared),
    nameMessage: (context, mayJoin, rule = context.placement?.rule) => {
      return nameMessage(context, mayJoin, rule !== undefined && hasToolSearch(rule, backends))
    },
    judgeUse(context, use) {
      const found = context.backend && backends.find(context.backend.name)
      return found && judgeUse(context, runtime, found, use)
    },
    rerouting: {
      prefix: metadataPrefix,
      reroute: (context) => findMetadataRoute(context, runtime, backends),
    },
    warmUp({ destination }) {
      if (destination.type !== 'mcp') return
      for (const { destination: one } of destination.targets) {
        if (one.type === 'static') runtime.resolver.hosts.warm(one.host)
      }
    },
    onConfigChange() {
      shared.stdioHost?.keepOnly([...backends.values()].flatMap(({ targets }) => targets))
      shared.changes.call()
    },
    stop: () => shared.stops.call(),
  }
}

const hasToolSearch = ({ backends: refs }: CompiledRule, backends: McpBackends): boolean =>
  refs.some(({ target, name }) => {
    return target.type === 'backend' && backends.find(name)?.toolSearch !== undefined
  })

/**
 * Routes requests for the OAuth metadata of an MCP server to the route of the server: one to an MCP backend, or with a
 * policy that serves metadata. The path of such a
 * request is not below the path of the server (RFC 9728 section 3.1). Routes that match metadata paths
 * explicitly take precedence.
 */
function findMetadataRoute(
  context: RequestContext,
  runtime: GatewayRuntime,
  backends: McpBackends,
): void {
  const asked = readMetadataPath(context.exchange.request.path)
  if (asked === undefined || matchesExplicitly(context)) return
  const path = asked.resource === '' ? '/' : asked.resource
  const isMcp = ({ target, name }: CompiledRule['backends'][number]) =>
    target.type === 'backend' && backends.find(name) !== undefined
  rerouteTo(
    context,
    runtime,
    { method: 'POST', path },
    (placement) =>
      placement.rule.backends.some(isMcp) ||
      placement.postRouting().steps.some(({ servesOAuthMetadata }) => servesOAuthMetadata),
  )
}

/** Whether the route matches an exact path, a regular expression, or a prefix of metadata paths. */
function matchesExplicitly({ routed }: RequestContext): boolean {
  if (routed === undefined) return false
  return routed.prefix === undefined || routed.prefix.startsWith('/.well-known')
}

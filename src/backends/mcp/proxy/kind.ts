/** GatewayBackends of MCP servers. */
import type { BackendKind } from '../../../proxy/request/backend-kind.ts'
import type { GatewayRuntime } from '../../../proxy/request/runtime.ts'
import { McpHub } from './hub.ts'
import { McpCall } from './mcp-call.ts'
import { findMetadataRoute } from './metadata-route.ts'

export function mcpKind(runtime: GatewayRuntime): BackendKind {
  const hub = new McpHub(runtime)
  const { backends } = hub
  return {
    type: 'mcp',
    protocol: 'mcp',
    onlyFor: 'only requests of MCP clients can go there',
    set: backends.set,
    remove: backends.remove,
    begin: (context) => new McpCall(context, runtime, hub),
    reroute: (context) => findMetadataRoute(context, runtime, backends),
    warmUp({ destination }) {
      if (destination.type !== 'mcp') return
      for (const { destination: one } of destination.targets) {
        if (one.type === 'static') runtime.resolver.hosts.warm(one.host)
      }
    },
    onConfigChange: () => hub.changed(),
    stop: () => hub.stop(),
  }
}

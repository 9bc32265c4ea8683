/** Every kind of backends, by the type of its configuration. */
import { poolKind } from './inference/pool-kind.ts'
import { dynamicKind } from './kinds/dynamic.ts'
import { serviceKind } from './kinds/service.ts'
import { staticKind } from './kinds/static.ts'
import { aiKind } from './llm/ai-kind.ts'
import { mcpKind } from './mcp/mcp-kind.ts'
import type { GatewayRuntime } from './runtime.ts'

export function addBackendKinds(runtime: GatewayRuntime): void {
  const { kinds } = runtime
  kinds.add('service', serviceKind(runtime))
  kinds.add('static', staticKind(runtime))
  kinds.add('dynamic', dynamicKind(runtime))
  kinds.add('pool', poolKind(runtime))
  kinds.add('ai', aiKind(runtime))
  kinds.add('mcp', mcpKind(runtime))
}

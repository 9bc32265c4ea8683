/** Every kind of backends, by the type of its configuration. */

import type { GatewayRuntime } from '../proxy/request/runtime.ts'
import { aiKind } from './ai/proxy/kind.ts'
import { dynamicKind } from './dynamic/proxy/kind.ts'
import { poolKind } from './inference-pool/proxy/kind.ts'
import { mcpKind } from './mcp/proxy/kind.ts'
import { serviceKind } from './service/proxy/kind.ts'
import { staticKind } from './static/proxy/kind.ts'

export function addBackendKinds(runtime: GatewayRuntime): void {
  const { kinds } = runtime
  kinds.add('service', serviceKind(runtime))
  kinds.add('static', staticKind(runtime))
  kinds.add('dynamic', dynamicKind(runtime))
  kinds.add('pool', poolKind(runtime))
  kinds.add('ai', aiKind(runtime))
  kinds.add('mcp', mcpKind(runtime))
}

/** The kinds of backends, and their metrics. */
import type { GatewayRuntime } from '../proxy/request/runtime.ts'
import type { Label } from '../proxy/telemetry/timed-counters.ts'
import type { BackendTelemetry } from '../proxy/telemetry/types.ts'
import { aiKind } from './ai/call/kind.ts'
import { ModelTelemetry } from './ai/call/model-telemetry.ts'
import { dynamicKind } from './dynamic/proxy/kind.ts'
import { poolKind } from './inference-pool/proxy/kind.ts'
import { PoolTelemetry } from './inference-pool/proxy/pool-call.ts'
import { McpTelemetry } from './mcp/proxy/exchange/mcp-record.ts'
import { mcpKind } from './mcp/proxy/kind.ts'
import { serviceKind } from './service/proxy/kind.ts'
import { staticKind } from './static/proxy/kind.ts'

/** Adds every kind, by the type of its configuration. */
export function addBackendKinds(runtime: GatewayRuntime): void {
  const { kinds } = runtime
  kinds.add('service', serviceKind(runtime))
  kinds.add('static', staticKind(runtime))
  kinds.add('dynamic', dynamicKind(runtime))
  kinds.add('pool', poolKind(runtime))
  kinds.add('ai', aiKind(runtime))
  kinds.add('mcp', mcpKind(runtime))
}

/** Creates the metrics of all kinds; `labelTexts` returns the texts of a request's labels. */
export const backendTelemetry = (
  labelTexts: (labels: readonly Label[]) => readonly string[],
): readonly BackendTelemetry[] => [
  new PoolTelemetry(),
  new ModelTelemetry(),
  new McpTelemetry(labelTexts),
]

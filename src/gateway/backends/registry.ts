/** The kinds of backends, and their metrics. */
import type { Destinations } from '../../ground/model/resources.ts'
import type { BackendKind } from '../proxy/request/backend-kind.ts'
import type { GatewayRuntime } from '../proxy/request/runtime.ts'
import type { Label } from '../proxy/telemetry/timed-counters.ts'
import type { BackendTelemetry } from '../proxy/telemetry/types.ts'
import { a2aKind } from './a2a/proxy/kind.ts'
import { A2aTelemetry } from './a2a/proxy/record.ts'
import { aiKind } from './ai/call/kind.ts'
import { ModelTelemetry } from './ai/call/model-telemetry.ts'
import { dynamicKind } from './dynamic/proxy/kind.ts'
import { poolKind } from './inference-pool/proxy/kind.ts'
import { PoolTelemetry } from './inference-pool/proxy/pool-call.ts'
import { McpTelemetry } from './mcp/proxy/exchange/mcp-record.ts'
import { mcpKind } from './mcp/proxy/kind.ts'
import { serviceKind } from './service/proxy/kind.ts'
import { staticKind } from './static/proxy/kind.ts'

/** Every kind, by the type of its configuration. */
const kinds: {
  readonly [Type in Exclude<keyof Destinations, 'unsupported'> | 'service' | 'pool']: (
    runtime: GatewayRuntime,
  ) => BackendKind
} = {
  service: serviceKind,
  static: staticKind,
  dynamic: dynamicKind,
  pool: poolKind,
  ai: aiKind,
  mcp: mcpKind,
  a2a: a2aKind,
}

export function addBackendKinds(runtime: GatewayRuntime): void {
  for (const [type, kind] of Object.entries(kinds)) runtime.kinds.add(type, kind(runtime))
}

/** Creates the metrics of all kinds; `labelTexts` returns the texts of a request's labels. */
export const backendTelemetry = (
  labelTexts: (labels: readonly Label[]) => readonly string[],
): readonly BackendTelemetry[] => [
  new PoolTelemetry(),
  new ModelTelemetry(),
  new McpTelemetry(labelTexts),
  new A2aTelemetry(labelTexts),
]

/** What a worker counts for kinds of backends besides what it counts of all requests. */
import type { Label } from '../proxy/telemetry/timed-counters.ts'
import type { BackendTelemetry } from '../proxy/telemetry/types.ts'
import { ModelTelemetry } from './ai/proxy/model-telemetry.ts'
import { PoolTelemetry } from './inference-pool/proxy/pool-telemetry.ts'
import { McpTelemetry } from './mcp/proxy/mcp-telemetry.ts'

/** `labelTexts`: the texts of the labels of a request. */
export const backendTelemetry = (
  labelTexts: (labels: readonly Label[]) => readonly string[],
): readonly BackendTelemetry[] => [
  new PoolTelemetry(),
  new ModelTelemetry(),
  new McpTelemetry(labelTexts),
]

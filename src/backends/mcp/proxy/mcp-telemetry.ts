/** What is counted of MCP clients. Labels are of the protocol and of the configuration, never clients'. */

import type { ServerExchange } from '../../../engine/contracts/requests.ts'
import type { MetricsSnapshot } from '../../../proxy/telemetry/metric-definitions.ts'
import { type Label, TimedCounters } from '../../../proxy/telemetry/timed-counters.ts'
import type {
  BackendRecord,
  BackendTelemetry,
  RequestFacts,
} from '../../../proxy/telemetry/types.ts'
import { knownMethod } from '../methods.ts'
import { type McpFacts, McpRecord } from './mcp-record.ts'

/** Where the labels of a place begin among those of requests: the same ones, in the same order. */
const placeAt = 5

export class McpTelemetry implements BackendTelemetry {
  readonly #requests: TimedCounters
  readonly #labels: Label[] = []

  /** `labelTexts`: the texts of the labels of a request, whose place begins with the sixth. */
  constructor(labelTexts: (labels: readonly Label[]) => readonly string[]) {
    this.#requests = new TimedCounters([], labelTexts)
  }

  /** `request`: the labels of the request, from which the place is taken. */
  count(
    record: BackendRecord,
    _exchange: ServerExchange,
    { backend }: RequestFacts,
    request: readonly Label[],
  ): void {
    if (!(record instanceof McpRecord)) return
    for (const facts of record.messages) this.#count(backend, facts, request)
  }

  #count(backend: string | undefined, facts: McpFacts, request: readonly Label[]): void {
    const labels = this.#labels
    labels[0] = backend ?? ''
    labels[1] = knownMethod(facts.method)
    labels[2] = facts.target ?? ''
    labels[3] = facts.type ?? ''
    labels[4] = facts.errorCode === undefined ? 'ok' : 'error'
    for (let at = placeAt; at < request.length; at++) labels[at] = request[at] ?? ''
    this.#requests.record(labels, 0, 0)
  }

  addTo(snapshot: MetricsSnapshot): MetricsSnapshot {
    const counts = this.#requests.snapshot().map(({ count }) => count)
    return { ...snapshot, mcp_requests_total: counts }
  }
}

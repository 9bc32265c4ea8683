/** Access log fields and metrics of MCP requests. Clients cannot choose the value of any label. */
import type { ServerExchange } from '../../../../../engines/http/contracts/requests.ts'
import { LabelValues, otherValues } from '../../../../proxy/telemetry/label-values.ts'
import type { MetricsSnapshot } from '../../../../proxy/telemetry/metric-definitions.ts'
import { RuleCounts } from '../../../../proxy/telemetry/rule-counts.ts'
import {
  type Label,
  TimedCounters,
  timedCounters,
} from '../../../../proxy/telemetry/timed-counters.ts'
import type {
  AccessRecord,
  BackendRecord,
  BackendTelemetry,
} from '../../../../proxy/telemetry/types.ts'
import { knownMethod } from '../../methods.ts'
import type { GuardChecks } from './guard-checks.ts'

/** The feature that refused a message, or withheld a part of its response. */
export type RefusedBy =
  | 'rules'
  | 'pinning'
  | 'toolGuard'
  | 'guard'
  | 'processor'
  | 'rateLimit'
  | 'budget'
  | 'repeats'
  | 'circuitBreaker'
  | 'approval'
  | 'size'
  | 'timeout'

/** One message of an MCP client. */
export interface McpDetails {
  readonly method: string
  readonly target?: string
  readonly type?: 'tool' | 'prompt' | 'resource'
  /** The tool, prompt or resource, by the name or URI that the server knows. */
  readonly item?: string
  /** Digest of the version of the item, if the server has listed it. */
  readonly version?: string
  readonly session?: string
  /** Code of the error that the client got. */
  readonly errorCode?: number
  /** Undefined if the gateway has refused nothing. */
  readonly refusedBy?: RefusedBy
  /** Arguments of a tool, masked. Undefined unless they are recorded. */
  readonly args?: string
  /** Whether the tool has failed by its result. */
  readonly isToolError?: boolean
}

/** The messages of one request. There is at least one. */
export class McpRecord implements BackendRecord {
  readonly protocol = 'mcp'
  readonly messages: readonly McpDetails[]
  readonly checks: GuardChecks

  constructor(messages: readonly McpDetails[], checks: GuardChecks) {
    this.messages = messages
    this.checks = checks
  }

  /** Calls of tools have effects, and refusals have the status of successful requests. */
  get isAlwaysRecorded(): boolean {
    return this.messages.some(
      ({ method, refusedBy }) => method === 'tools/call' || refusedBy !== undefined,
    )
  }

  /** Visits every field. In a batch, a field has the distinct values of all messages. */
  eachField(visit: Parameters<BackendRecord['eachField']>[0]): void {
    const [first, ...more] = this.messages
    if (first === undefined) return
    for (const [name, read] of fields) {
      if (more.length === 0) visit(name, read(first), false)
      else {
        const values = new Set(this.messages.map(read).filter((value) => value !== undefined))
        visit(name, [...values].join(','), false)
      }
    }
  }
}

type Read = (details: McpDetails) => string | number | undefined

const itemOf =
  (type: McpDetails['type']): Read =>
  (details) =>
    details.type === type ? details.item : undefined

const fields: readonly (readonly [name: string, read: Read])[] = [
  ['mcp.method.name', ({ method }) => method],
  ['mcp.session.id', ({ session }) => session],
  ['mcp.target', ({ target }) => target],
  ['mcp.resource.type', ({ type }) => type],
  ['mcp.resource.uri', itemOf('resource')],
  ['gen_ai.tool.name', itemOf('tool')],
  ['gen_ai.prompt.name', itemOf('prompt')],
  ['gen_ai.tool.call.arguments', ({ args }) => args],
  ['sluice.mcp.item.digest', ({ version }) => version],
  ['sluice.mcp.refused.by', ({ refusedBy }) => refusedBy],
  ['sluice.mcp.tool.failed', ({ isToolError }) => (isToolError === true ? 'true' : undefined)],
  ['mcp.error.code', ({ errorCode }) => errorCode],
]

/** Index from which labels are copied from the labels of the request: the labels of listener and route. */
const routeLabelsAt = 5

/** Maximum number of tools with their own label value. */
const maxTools = 500

export class McpTelemetry implements BackendTelemetry {
  readonly #requests: TimedCounters
  readonly #labels: Label[] = []
  readonly #toolCalls = timedCounters('mcp_tool_call_duration_seconds')
  readonly #guardChecks = new RuleCounts()
  readonly #toolLabels: Label[] = []
  /** Tools of which a call has succeeded. Others may be names that clients have made up. */
  readonly #tools = new LabelValues(maxTools)

  /** `labelTexts` converts the labels of a request to texts. */
  constructor(labelTexts: (labels: readonly Label[]) => readonly string[]) {
    this.#requests = new TimedCounters([], labelTexts)
  }

  /** Counts the messages. `request` has the labels of the request. */
  count(
    record: BackendRecord,
    _exchange: ServerExchange,
    { backend, durationMs }: AccessRecord,
    request: readonly Label[],
  ): void {
    if (!(record instanceof McpRecord)) return
    record.checks.each((step, { labels, count }) => this.#guardChecks.add(step, labels, count))
    for (const details of record.messages) {
      this.#count(backend, details, request)
      if (details.type === 'tool' && details.item !== undefined) {
        this.#countTool(backend ?? '', details.item, details, durationMs)
      }
    }
  }

  #countTool(backend: string, tool: string, details: McpDetails, durationMs: number): void {
    const isFailed = details.errorCode !== undefined || details.isToolError === true
    const isKnown = this.#tools.has(tool) || !isFailed
    const labels = this.#toolLabels
    labels[0] = backend
    labels[2] = isKnown ? this.#tools.of(tool) : otherValues
    labels[1] = labels[2] === otherValues ? '' : (details.target ?? '')
    labels[3] = isFailed ? 'error' : 'ok'
    this.#toolCalls.record(labels, durationMs / 1_000, 0)
  }

  #count(backend: string | undefined, details: McpDetails, request: readonly Label[]): void {
    const labels = this.#labels
    labels[0] = backend ?? ''
    labels[1] = knownMethod(details.method)
    labels[2] = details.target ?? ''
    labels[3] = details.type ?? ''
    labels[4] = details.errorCode === undefined ? 'ok' : 'error'
    for (let at = routeLabelsAt; at < request.length; at++) labels[at] = request[at] ?? ''
    this.#requests.record(labels, 0, 0)
  }

  snapshot(): MetricsSnapshot {
    return {
      mcp_requests_total: this.#requests.counts(),
      mcp_guard_checks_total: this.#guardChecks.series(),
      mcp_tool_call_duration_seconds: this.#toolCalls.durations(),
    }
  }
}

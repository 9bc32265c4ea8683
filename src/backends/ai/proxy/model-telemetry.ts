/** Metrics of requests to language models (OpenTelemetry, semantic conventions of generative AI). */

import type { ServerExchange } from '../../../engine/contracts/requests.ts'
import {
  type MetricName,
  type MetricsSnapshot,
  metricDefinitions,
} from '../../../proxy/telemetry/metric-definitions.ts'
import { type Label, TimedCounters } from '../../../proxy/telemetry/timed-counters.ts'
import type {
  BackendRecord,
  BackendTelemetry,
  Ejection,
  RequestFacts,
} from '../../../proxy/telemetry/types.ts'
import { inputWithCache } from '../chat.ts'
import { type ModelFacts, ModelRecord } from './model-record.ts'

/** Models that have labels of their own; clients may write any name. */
const mostModels = 200
const longestName = 128
/** Stands for all others. */
const other = '_OTHER'

const countersOf = (
  name: MetricName,
  describe: (labels: readonly Label[]) => readonly string[],
) => {
  const { buckets } = metricDefinitions[name] as { buckets?: readonly number[] }
  return new TimedCounters(buckets ?? [], describe)
}

/** By the labels, joined. */
type Counts = Map<string, { readonly labels: readonly string[]; count: number }>

export class ModelTelemetry implements BackendTelemetry {
  readonly #models = new Set<string>()
  readonly #tokens: TimedCounters
  readonly #requests: TimedCounters
  readonly #operations: TimedCounters
  readonly #firstTokens: TimedCounters
  readonly #perToken: TimedCounters
  readonly #checks: Counts = new Map()
  readonly #ejections: Counts = new Map()
  readonly #ejected = new Map<string, Ejection>()

  constructor() {
    const describe = (labels: readonly Label[]) => labels.map(String)
    this.#tokens = countersOf('gen_ai_client_token_usage', describe)
    this.#requests = countersOf('gen_ai_server_request_duration', describe)
    this.#operations = countersOf('gen_ai_client_operation_duration', describe)
    this.#firstTokens = countersOf('gen_ai_server_time_to_first_token', describe)
    this.#perToken = countersOf('gen_ai_server_time_per_output_token', describe)
  }

  count(record: BackendRecord, exchange: ServerExchange, facts: RequestFacts): void {
    if (!(record instanceof ModelRecord)) return
    const model = record.facts
    for (const { phase, guard, action } of model.checks) {
      count(this.#checks, [phase, guard, action])
    }
    const { operation, failure, operationSeconds, usage } = model
    // Who was refused here, and was sent to nobody, is no operation.
    if (operation === undefined || operationSeconds === undefined) return
    const labels = this.#labels(exchange, facts, model)
    const durations = [failure ?? '', ...labels]
    this.#requests.record(durations, facts.durationMs / 1_000, 0)
    this.#operations.record(durations, operationSeconds, 0)
    if (model.firstTokenSeconds !== undefined) {
      this.#firstTokens.record(labels, model.firstTokenSeconds, 0)
    }
    if (model.perTokenSeconds !== undefined) this.#perToken.record(labels, model.perTokenSeconds, 0)
    if (usage === undefined || operation === 'count_tokens') return
    const tokens = (type: string, amount: number) =>
      this.#tokens.record([type, ...labels], amount, 0)
    tokens('input', inputWithCache(usage))
    if (operation === 'chat') tokens('output', usage.output)
    if (usage.cacheRead !== undefined) tokens('input_cache_read', usage.cacheRead)
    if (usage.cacheWrite !== undefined) tokens('input_cache_write', usage.cacheWrite)
  }

  ejected(ejection: Ejection): void {
    const { backend, provider, reason } = ejection
    count(this.#ejections, [backend, provider, reason])
    this.#ejected.set(`${backend}\n${provider}`, ejection)
  }

  addTo(snapshot: MetricsSnapshot): MetricsSnapshot {
    const durations = (counters: TimedCounters) =>
      counters.snapshot().map(({ duration }) => duration)
    const counts = (all: Counts) =>
      [...all.values()].map(({ labels, count: value }) => ({ labels, values: [value] }))
    return {
      ...snapshot,
      gen_ai_client_token_usage: durations(this.#tokens),
      gen_ai_client_operation_duration: durations(this.#operations),
      gen_ai_server_request_duration: durations(this.#requests),
      gen_ai_server_time_to_first_token: durations(this.#firstTokens),
      gen_ai_server_time_per_output_token: durations(this.#perToken),
      guardrail_checks_total: counts(this.#checks),
      model_provider_ejections_total: counts(this.#ejections),
      model_provider_ejected: this.#ejectedNow(),
    }
  }

  #ejectedNow() {
    for (const [key, { isOver }] of this.#ejected) if (isOver()) this.#ejected.delete(key)
    return [...this.#ejected.values()].map(({ backend, provider, reason }) => ({
      labels: [backend, provider, reason],
      values: [1],
    }))
  }

  #labels(exchange: ServerExchange, facts: RequestFacts, model: ModelFacts): Label[] {
    const { provider = 'unknown', failure, requestModel, responseModel, operation = '' } = model
    const isKnown = failure === undefined
    const gateway = facts.gateway ?? 'unknown'
    return [
      operation,
      provider,
      provider,
      this.#model(requestModel, isKnown),
      this.#model(responseModel, isKnown),
      `${exchange.port}/${gateway}`,
      gateway,
      facts.listener ?? 'unknown',
      facts.route ?? 'unknown',
      facts.rule ?? 'unknown',
    ]
  }

  /** Only models that have answered get a name of their own, and not more than a bounded number. */
  #model(name: string | undefined, isKnown: boolean): string {
    if (name === undefined) return 'unknown'
    if (this.#models.has(name)) return name
    const isNew = isKnown && this.#models.size < mostModels && name.length <= longestName
    if (!isNew) return other
    this.#models.add(name)
    return name
  }
}

function count(counts: Counts, labels: readonly string[]): void {
  const key = labels.join('\n')
  const known = counts.get(key)
  if (known === undefined) counts.set(key, { labels, count: 1 })
  else known.count++
}

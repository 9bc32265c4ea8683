/** Metrics of requests to language models, by OpenTelemetry's conventions for generative AI. */
import type { ServerExchange } from '../../../../engines/http/contracts/requests.ts'
import { inputWithCache } from '../../../../engines/messages/chat.ts'
import { costBounds } from '../../../../engines/messages/cost/cost-bounds.ts'
import type { MetricsSnapshot } from '../../../proxy/telemetry/metric-definitions.ts'
import { RuleCounts } from '../../../proxy/telemetry/rule-counts.ts'
import { type Label, timedCounters } from '../../../proxy/telemetry/timed-counters.ts'
import type {
  AccessRecord,
  BackendRecord,
  BackendTelemetry,
  Ejection,
} from '../../../proxy/telemetry/types.ts'
import { storeCounts } from '../answers/shared-values.ts'
import type { GuardCheck } from '../guards/guard-call.ts'
import { IdentityCounters } from './identity-counters.ts'
import { type ModelDetails, ModelRecord } from './model-record.ts'
import { MoneyCounters } from './money-counters.ts'

/** Maximum number of models with their own label value; clients may send any name. */
const maxModels = 200
const maxNameLength = 128
/** Label value of all other models. */
const otherModels = '_OTHER'

/** Counters, by their joined labels. */
type Counts = Map<string, { readonly labels: readonly string[]; count: number }>

export class ModelTelemetry implements BackendTelemetry {
  readonly #models = new Set<string>()
  readonly #tokens = timedCounters('gen_ai_client_token_usage')
  readonly #requests = timedCounters('gen_ai_server_request_duration')
  readonly #operations = timedCounters('gen_ai_client_operation_duration')
  readonly #firstTokens = timedCounters('gen_ai_server_time_to_first_token')
  readonly #perToken = timedCounters('gen_ai_server_time_per_output_token')
  readonly #costs = new MoneyCounters(costBounds)
  readonly #identities = new IdentityCounters()
  readonly #lookups = timedCounters('model_cost_lookups_total')
  readonly #answers = timedCounters('model_cache_requests_total')
  readonly #saved = new MoneyCounters()
  readonly #embeddings = timedCounters('model_cache_embeddings_total')
  readonly #checks: Counts = new Map()
  readonly #ruleChecks = new RuleCounts()
  readonly #ruleMatches = new RuleCounts()
  readonly #ejections: Counts = new Map()
  readonly #ejected = new Map<string, Ejection>()
  readonly #list: Label[] = []
  readonly #labelList: Label[] = []
  #port = 0
  #gateway = ''
  /** Labels of the request that policies add. */
  #added: Label = ''
  #portLabel = ''

  count(
    record: BackendRecord,
    exchange: ServerExchange,
    access: AccessRecord,
    request: readonly Label[],
  ): void {
    if (!(record instanceof ModelRecord)) return
    this.#added = request.at(-1) ?? ''
    const model = record.details
    for (const check of model.checks) this.#countCheck(check)
    const { operation, failure, operationSeconds, usage } = model
    this.#countAnswer(model, exchange, access)
    // A request that was sent to no provider is not an operation.
    if (operation === undefined || operationSeconds === undefined) return
    const labels = this.#labels(exchange, access, model)
    const durations = this.#withFirst(failure ?? '', labels)
    this.#requests.record(durations, access.durationMs / 1_000, 0, access.exportedTrace)
    this.#operations.record(durations, operationSeconds, 0)
    if (model.firstTokenSeconds !== undefined) {
      this.#firstTokens.record(labels, model.firstTokenSeconds, 0)
    }
    if (model.perTokenSeconds !== undefined) this.#perToken.record(labels, model.perTokenSeconds, 0)
    this.#countCost(model, exchange, labels)
    if (usage === undefined || operation === 'count_tokens') return
    this.#countTokens('input', inputWithCache(usage), labels)
    if (operation === 'chat') this.#countTokens('output', usage.output, labels)
    this.#countTokens('input_cache_read', usage.cacheRead, labels)
    this.#countTokens('input_cache_write', usage.cacheWrite, labels)
  }

  #countAnswer(model: ModelDetails, exchange: ServerExchange, access: AccessRecord): void {
    const { answer } = model
    if (answer === undefined) return
    const labels = this.#labels(exchange, access, model)
    this.#answers.record(this.#withFirst(answer.result, labels), 0, 0)
    const saved = answer.hit?.cost
    if (saved !== undefined) this.#saved.add(labels, { status: 'exact', total: saved })
    this.#countEmbedding(model, exchange, access)
  }

  #countEmbedding(model: ModelDetails, exchange: ServerExchange, access: AccessRecord): void {
    const { comparison } = model
    if (comparison === undefined) return
    const { use } = comparison
    const names = use && {
      provider: use.provider,
      requestModel: use.model,
      responseModel: use.model,
    }
    const labels = this.#labels(exchange, access, { ...model, operation: 'embeddings', ...names })
    this.#embeddings.record(this.#withFirst(use === undefined ? 'failed' : 'made', labels), 0, 0)
    if (use === undefined) return
    this.#countTokens('input', use.usage.input, labels)
    this.#costs.add(labels, use.cost)
    this.#identities.count(exchange, labels[1] ?? '', labels[4] ?? '', use.usage.input, use.cost)
  }

  #countCheck({ phase, guard, action, step, at, matches = [] }: GuardCheck): void {
    count(this.#checks, [phase, guard, action])
    this.#ruleChecks.add(step, [phase, `${at}`, guard, action])
    for (const match of matches) {
      this.#ruleMatches.add(step, [phase, `${at}`, guard, match, action])
    }
  }

  #countCost(
    { cost, costStatus, usage }: ModelDetails,
    exchange: ServerExchange,
    labels: readonly Label[],
  ): void {
    if (costStatus === undefined) return
    this.#lookups.record(this.#withFirst(costStatus, labels), 0, 0)
    if (cost !== undefined) this.#costs.add(labels, cost)
    const counted = cost?.usage ?? usage
    const tokens = counted === undefined ? 0 : inputWithCache(counted) + counted.output
    this.#identities.count(exchange, labels[1] ?? '', labels[4] ?? '', tokens, cost)
  }

  #countTokens(type: string, amount: number | undefined, labels: readonly Label[]): void {
    if (amount !== undefined) this.#tokens.record(this.#withFirst(type, labels), amount, 0)
  }

  ejected(ejection: Ejection): void {
    const { backend, provider, reason } = ejection
    count(this.#ejections, [backend, provider, reason])
    this.#ejected.set(`${backend}\n${provider}`, ejection)
  }

  snapshot(): MetricsSnapshot {
    const counts = (all: Counts) =>
      [...all.values()].map(({ labels, count: value }) => ({ labels, values: [value] }))
    return {
      gen_ai_client_token_usage: this.#tokens.durations(),
      gen_ai_client_cost_usd_total: this.#costs.sums(),
      gen_ai_client_request_cost_usd: this.#costs.histograms(),
      ...this.#identities.snapshot(),
      model_cost_lookups_total: this.#lookups.counts(),
      model_cache_requests_total: this.#answers.counts(),
      model_cache_saved_usd_total: this.#saved.sums(),
      model_cache_store_requests_total: storeCounts(),
      model_cache_embeddings_total: this.#embeddings.counts(),
      gen_ai_client_operation_duration: this.#operations.durations(),
      gen_ai_server_request_duration: this.#requests.durations(),
      gen_ai_server_time_to_first_token: this.#firstTokens.durations(),
      gen_ai_server_time_per_output_token: this.#perToken.durations(),
      guardrail_checks_total: counts(this.#checks),
      guardrail_rule_checks_total: this.#ruleChecks.series(),
      guardrail_matches_total: this.#ruleMatches.series(),
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

  /** Returns one label and then all others, in a list that the next call reuses. */
  #withFirst(first: Label, labels: readonly Label[]): readonly Label[] {
    const all = this.#list
    all[0] = first
    for (let at = 0; at < labels.length; at++) all[at + 1] = labels[at] ?? ''
    return all
  }

  /** Returns the label of a port of a Gateway. Requests to the same one follow each other. */
  #portOf(port: number, gateway: string): string {
    if (port !== this.#port || gateway !== this.#gateway) {
      this.#port = port
      this.#gateway = gateway
      this.#portLabel = `${port}/${gateway}`
    }
    return this.#portLabel
  }

  /** Returns the labels, in a list that the next call reuses. */
  #labels(exchange: ServerExchange, access: AccessRecord, model: ModelDetails): readonly Label[] {
    const { provider = 'unknown', failure, requestModel, responseModel, operation = '' } = model
    const isKnown = failure === undefined
    const gateway = access.gateway ?? 'unknown'
    const labels = this.#labelList
    labels[0] = operation
    labels[1] = provider
    labels[2] = provider
    labels[3] = this.#model(requestModel, isKnown)
    labels[4] = this.#model(responseModel, isKnown)
    labels[5] = this.#portOf(exchange.port, gateway)
    labels[6] = gateway
    labels[7] = access.listener ?? 'unknown'
    labels[8] = access.route ?? 'unknown'
    labels[9] = access.rule ?? 'unknown'
    labels[10] = this.#added
    return labels
  }

  /** Returns the label of a model. Only a limited number of models that have answered get one. */
  #model(name: string | undefined, isKnown: boolean): string {
    if (name === undefined) return 'unknown'
    if (this.#models.has(name)) return name
    const isNew = isKnown && this.#models.size < maxModels && name.length <= maxNameLength
    if (!isNew) return otherModels
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

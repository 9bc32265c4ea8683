/** Reads from the metrics of all workers what the time series count. The metrics are the only place of counting. */
import { costBuckets } from '../../../engines/messages/cost/cost-bounds.ts'
import {
  addCount,
  costPrefix,
  type Groups,
  maxNameLength,
  noRoute,
  otherName,
  refusedPrefix,
} from '../../../past/series/bucket.ts'
import {
  type MetricDefinition,
  type MetricName,
  type MetricsSnapshot,
  metricDefinitions,
  type Series,
} from './metric-definitions.ts'
import { isRefused } from './refused.ts'

/** Series of a sample, of which the group `all` has one without a name. */
type Names = Parameters<typeof addCount>[1] extends infer Group
  ? readonly (readonly [group: Group, name: string])[]
  : never

type Labels = Readonly<Record<string, string>>

/** Value of all labels of the combinations beyond the limit of a metric. */
const overflow = 'overflow'
/** Value of labels that do not apply, such as the route of a request that no route matched. */
const unknown = 'unknown'

const nameOf = (label = unknown): string =>
  label === overflow ? otherName : label === '' || label === unknown ? noRoute : label

const isFailed = (status: string): boolean => status >= '5' && status.length === 3

/** Returns the sums of everything since the proxy started. */
export function countsOf(snapshot: MetricsSnapshot): Groups {
  const groups: Groups = new Map()
  const add = (names: Names, count: string, value: number) => {
    for (const [group, name] of names) addCount(groups, group, name, count, value)
  }
  addRequests(snapshot, add)
  addRefusals(snapshot, add)
  addModels(snapshot, add)
  addHits(snapshot, add)
  addKeys(snapshot, add)
  addTools(snapshot, add)
  for (const { labels, value } of samplesOf(snapshot, 'guardrail_checks_total')) {
    const { phase = '', guard = '', action = '' } = labels
    add([all, ['guard', `${phase} ${guard}`]], `verdict:${action}`, value)
    add([['guard', `${phase} ${guard}`]], 'requests', value)
  }
  for (const { labels, value } of samplesOf(snapshot, 'guardrail_rule_checks_total')) {
    const { policy = '', phase = '', rule = '', guard = '', action = '' } = labels
    const isOther = policy === overflow
    const name = isOther ? otherName : `${policy}: ${phase.toLowerCase()} ${rule} (${guard})`
    add([['rule', name]], `verdict:${isOther ? 'any' : action}`, value)
    add([['rule', name]], 'requests', value)
  }
  return groups
}

type Add = (names: Names, count: string, value: number) => void
const all = ['all', ''] as const

function addRequests(snapshot: MetricsSnapshot, add: Add): void {
  for (const { labels, values } of histogramsOf(snapshot, 'request_duration_seconds')) {
    const names = [
      all,
      ['route', nameOf(labels.route)],
      ['backend', nameOf(labels.backend)],
    ] as const
    const count = addHistogram(names, values, add)
    const { status = '', reason = '' } = labels
    if (isRefused(Number(status), reason)) add(names, 'refused', count)
    if (status.startsWith('4')) add(names, 'clientErrors', count)
    if (reason === 'UpstreamFailure') add(names, 'resets', count)
    if (!isFailed(status)) continue
    add(names, 'errors', count)
    add(names, `cause:${reason} ${status}`, count)
  }
}

function addRefusals(snapshot: MetricsSnapshot, add: Add): void {
  for (const { labels, value } of samplesOf(snapshot, 'policy_refusals_total')) {
    const { policy, field, route } = labels
    const name = policy === overflow ? otherName : `${field} of ${policy}`
    const member = name.length > maxNameLength ? otherName : name
    add([all, ['route', nameOf(route)]], `${refusedPrefix}${member}`, value)
  }
}

const modelOf = (labels: Labels): string =>
  nameOf(
    labels.gen_ai_response_model === unknown
      ? labels.gen_ai_request_model
      : labels.gen_ai_response_model,
  )

const namesOf = (labels: Labels): Names => [
  all,
  ['model', modelOf(labels)],
  ['route', nameOf(labels.route)],
]

function addModels(snapshot: MetricsSnapshot, add: Add): void {
  for (const { labels, values } of histogramsOf(snapshot, 'gen_ai_server_request_duration')) {
    const names = [['model', modelOf(labels)]] as const
    const count = addHistogram(names, values, add)
    const { error_type: type = '' } = labels
    if (type === '') continue
    add(names, 'errors', count)
    add(names, `cause:${type}`, count)
  }
  for (const { labels, values } of histogramsOf(snapshot, 'gen_ai_client_token_usage')) {
    const { gen_ai_token_type: type } = labels
    // Those of caches are a part of the input.
    if (type !== 'input' && type !== 'output') continue
    const tokens = values.at(-1)?.[1] ?? 0
    add(namesOf(labels), 'tokens', tokens)
    add(namesOf(labels), type === 'input' ? 'inputTokens' : 'outputTokens', tokens)
  }
  for (const { labels, value } of samplesOf(snapshot, 'gen_ai_client_cost_usd_total')) {
    add(namesOf(labels), 'cost', value)
  }
  addRequestCosts(snapshot, add)
  for (const { labels, value } of samplesOf(snapshot, 'model_cost_lookups_total')) {
    const { status } = labels
    add(namesOf(labels), 'billed', value)
    if (status === 'unknown' || status === 'partial') add(namesOf(labels), 'unpriced', value)
  }
}

function addRequestCosts(snapshot: MetricsSnapshot, add: Add): void {
  for (const { labels, values } of histogramsOf(snapshot, 'gen_ai_client_request_cost_usd')) {
    const names = [all, ['route', nameOf(labels.route)]] as const
    // The last value is the sum.
    for (const [at, [, count]] of values.slice(0, -1).entries()) {
      add(names, `${costPrefix}${costBuckets[at]} ${modelOf(labels)}`, count)
    }
  }
}

function addHits(snapshot: MetricsSnapshot, add: Add): void {
  for (const { labels, value } of samplesOf(snapshot, 'model_cache_requests_total')) {
    if (labels.result === 'hit') add(namesOf(labels), 'hits', value)
  }
  for (const { labels, value } of samplesOf(snapshot, 'model_cache_saved_usd_total')) {
    add(namesOf(labels), 'saved', value)
  }
}

const keyNames = ({ dimension = '', value = '' }: Labels): Names => [
  ['key', value === otherName || dimension === overflow ? otherName : `${dimension}=${value}`],
]

function addKeys(snapshot: MetricsSnapshot, add: Add): void {
  for (const { labels, value } of samplesOf(snapshot, 'identity_requests_total')) {
    add(keyNames(labels), 'requests', value)
    if (labels.class === '5') add(keyNames(labels), 'errors', value)
  }
  for (const { labels, value } of samplesOf(snapshot, 'identity_model_requests_total')) {
    // Other requests without an identity are not counted.
    if (labels.value === 'none') add(keyNames(labels), 'requests', value)
  }
  for (const { labels, value } of samplesOf(snapshot, 'identity_model_tokens_total')) {
    add(keyNames(labels), 'tokens', value)
  }
  for (const { labels, value } of samplesOf(snapshot, 'identity_model_cost_usd_total')) {
    add(keyNames(labels), 'cost', value)
  }
}

function addTools(snapshot: MetricsSnapshot, add: Add): void {
  for (const { labels, value } of samplesOf(snapshot, 'mcp_requests_total')) {
    const { backend = '', target = '', result } = labels
    // The gateway itself answers messages without a target.
    if (target === '' || target === unknown) continue
    const isOther = backend === overflow || target === overflow
    const names = [['target', isOther ? otherName : `${backend} ${target}`]] as const
    add(names, 'requests', value)
    if (result === 'error') add(names, 'errors', value)
  }
  for (const { labels, values } of histogramsOf(snapshot, 'mcp_tool_call_duration_seconds')) {
    const { backend = '', tool = '', result } = labels
    const isOther = backend === overflow || tool === otherName
    const names = [['tool', isOther ? otherName : `${backend} ${tool}`]] as const
    const count = addHistogram(names, values, add)
    add([all, ...names], 'toolCalls', count)
    if (result !== 'error') continue
    add([all, ...names], 'toolErrors', count)
    add(names, 'errors', count)
  }
}

/** Adds the requests of a histogram and their latencies, and returns how many there are. */
function addHistogram(names: Names, values: Buckets, add: Add): number {
  let count = 0
  // The last value is the sum.
  for (let at = 0; at < values.length - 1; at++) {
    const [bound, value] = values[at] ?? noBucket
    if (value === 0) continue
    count += value
    add(names, bound, value)
  }
  add(names, 'requests', count)
  return count
}

const noBucket = ['', 0] as const

type Buckets = readonly (readonly [bound: string, value: number])[]

const labelsOf = (name: MetricName, { labels }: Series): Labels =>
  Object.fromEntries(metricDefinitions[name].labels.map((label, at) => [label, labels[at] ?? '']))

const samplesOf = (snapshot: MetricsSnapshot, name: MetricName) =>
  (snapshot[name] ?? []).map((series) => ({
    labels: labelsOf(name, series),
    value: series.values[0] ?? 0,
  }))

function histogramsOf(snapshot: MetricsSnapshot, name: MetricName) {
  const { buckets = [] }: MetricDefinition = metricDefinitions[name]
  const bounds = [...buckets.map((bound) => `le:${bound}`), 'le:Infinity', 'sum']
  return (snapshot[name] ?? []).map((series) => ({
    labels: labelsOf(name, series),
    values: bounds.map((bound, at) => [bound, series.values[at] ?? 0] as const),
  }))
}

/** Metrics of a controller. Labels are kinds and outcomes, but never objects, whose number has no bound. */
import { ledgerMetrics } from '../../../gateway/proxy/telemetry/metric-definitions.ts'
import { labelText, metricHead } from '../../../ground/base/prometheus.ts'

interface MetricRow {
  readonly type: 'counter' | 'gauge' | 'summary'
  readonly labels: readonly string[]
  readonly help: string
}

/** Series by their label values. */
type MetricValues = Map<string, { readonly labels: readonly string[]; sum: number; count: number }>

const counter = (help: string, ...labels: string[]): MetricRow => ({
  type: 'counter',
  labels,
  help,
})
const gauge = (help: string, ...labels: string[]): MetricRow => ({ type: 'gauge', labels, help })
const summary = (help: string, ...labels: string[]): MetricRow => ({
  type: 'summary',
  labels,
  help,
})

export const controllerMetrics = {
  controller_build_info: gauge('Version of the controller.', 'version'),
  controller_ready: gauge('1 while the controller is ready.'),
  events_appended_total: counter(
    'Events that this replica has appended: observations (source), decisions, acknowledgements of proxies (delivery), timers and key sets (effect), lease, digests.',
    'stage',
  ),
  append_failures_total: counter('Appends that failed and are retried.', 'stage'),
  append_seconds: summary('Time until appended events are durable.', 'stage'),
  fold_seconds: summary('Time to fold one event.'),
  publish_seconds: summary('Time to hand a change set to the streams of all proxies.'),
  fold_position: gauge('Position of the last event folded.'),
  queue_depth: gauge(
    'Objects whose change is not appended yet (`source`), or whose status is to be compared (`status`).',
    'queue',
  ),
  watched_objects: gauge('Objects that the watches know.'),
  watch_up: gauge(
    '1 for the state of the watch of a kind: following, listing, failing or absent.',
    'kind',
    'state',
  ),
  watch_silence_seconds: gauge(
    'Time since the last message on the watch of a kind; the server sends one about every minute.',
    'kind',
  ),
  status_writes_total: counter(
    'Writes of statuses: written, conflict (retried), refused (not retried), failed (retried).',
    'kind',
    'outcome',
  ),
  deployment_writes_total: counter(
    'Objects of Gateways that were written: created, updated, deleted.',
    'kind',
    'change',
  ),
  deployment_failures_total: counter(
    'Deployments that the API server refused (reported in the status of the Gateway), or that failed and are retried.',
    'outcome',
  ),
  lease_held: gauge('1 while this replica holds the lease.'),
  lease_epoch: gauge('Epoch of the newest holder in the log.'),
  lease_changes_total: counter('How often this replica has acquired or lost the lease.', 'change'),
  digest_checks_total: counter(
    'Comparisons of the own state with that of another replica at the same position: equal, different.',
    'result',
  ),
  state_digest: gauge(
    'Always 1; the labels are the digests of the current state.',
    'desired',
    'status',
  ),
  certificate_problems: gauge(
    'Certificates in Secrets and ConfigMaps that are not valid now (`invalid`), or whose end is near (`expiring`).',
    'state',
  ),
  session_restarts_total: counter('How often the controller restarted its control loop.'),
  log_losses_total: counter('How often events were removed from the log externally.'),
  ...ledgerMetrics,
  controller_resident_memory_bytes: gauge('Resident memory.'),
  controller_cpu_seconds_total: counter('User and system CPU time.'),
} as const satisfies Record<string, MetricRow>

type ControllerMetric = keyof typeof controllerMetrics

export class ControllerMetrics {
  readonly #values = new Map<ControllerMetric, MetricValues>()
  readonly #collectors = new Set<() => void>()

  /** Adds to a counter, or one observation to a summary. */
  add(name: ControllerMetric, amount = 1, ...labels: string[]): void {
    const known = this.#entry(name, labels)
    known.sum += amount
    known.count += 1
  }

  set(name: ControllerMetric, value: number, ...labels: string[]): void {
    this.#entry(name, labels).sum = value
  }

  /** Removes all series of a metric. Needed if its labels name a state, before the current state is set. */
  clear(name: ControllerMetric): void {
    this.#values.delete(name)
  }

  /** Calls `collect` before each scrape. Returns a function that stops these calls. */
  collect(collect: () => void): () => void {
    this.#collectors.add(collect)
    return () => this.#collectors.delete(collect)
  }

  /** All metrics in Prometheus text format. */
  text(): string {
    for (const collect of this.#collectors) collect()
    const { user, system } = process.cpuUsage()
    this.set('controller_cpu_seconds_total', (user + system) / 1e6)
    this.set('controller_resident_memory_bytes', process.memoryUsage.rss())
    return Object.entries<MetricRow>(controllerMetrics)
      .map(([name, row]) => this.#textOf(name as ControllerMetric, row))
      .join('')
  }

  /** The Prometheus text of one metric; empty if it has no series. */
  #textOf(short: ControllerMetric, { type, labels, help }: MetricRow): string {
    const series = this.#values.get(short)
    if (series === undefined) return ''
    const name = `sluice_${short}`
    let text = metricHead(name, type, help)
    for (const { labels: values, sum, count } of series.values()) {
      const own = labelText(labels, values)
      text +=
        type === 'summary'
          ? `${name}_sum${own} ${sum}\n${name}_count${own} ${count}\n`
          : `${name}${own} ${sum}\n`
    }
    return text
  }

  #entry(name: ControllerMetric, labels: readonly string[]) {
    const values = this.#values.get(name) ?? new Map()
    this.#values.set(name, values)
    const id = labels.join('\0')
    const known = values.get(id) ?? { labels, sum: 0, count: 0 }
    values.set(id, known)
    return known
  }
}

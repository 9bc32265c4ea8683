/** What a controller counts. Kinds and outcomes are labels, objects never are: those have no bound. */
import { labelText, metricHead } from '../../base/prometheus.ts'

interface MetricRow {
  readonly type: 'counter' | 'gauge' | 'summary'
  readonly labels: readonly string[]
  readonly help: string
}

/** Series by their label values. */
type MetricValues = Map<string, { readonly labels: readonly string[]; sum: number; count: number }>

export const controllerMetrics = {
  controller_build_info: { type: 'gauge', labels: ['version'], help: 'Version of the controller.' },
  controller_ready: { type: 'gauge', labels: [], help: '1 while the controller is ready.' },
  events_appended_total: {
    type: 'counter',
    labels: ['stage'],
    help: 'Events that this replica has appended: observations (source), decisions, answers of proxies (delivery), timers and key sets (effect), lease, digests.',
  },
  append_failures_total: {
    type: 'counter',
    labels: ['stage'],
    help: 'Appends that failed and are tried again.',
  },
  append_seconds: {
    type: 'summary',
    labels: ['stage'],
    help: 'Time until appended events are durable.',
  },
  fold_seconds: { type: 'summary', labels: [], help: 'Time to fold one event.' },
  publish_seconds: {
    type: 'summary',
    labels: [],
    help: 'Time to hand a change set to the streams of all proxies.',
  },
  fold_position: { type: 'gauge', labels: [], help: 'Position of the last event folded.' },
  queue_depth: {
    type: 'gauge',
    labels: ['queue'],
    help: 'Objects whose change is not appended yet (`source`), or whose status is to be compared (`status`).',
  },
  watched_objects: { type: 'gauge', labels: [], help: 'Objects that the watches know.' },
  watch_up: {
    type: 'gauge',
    labels: ['kind', 'state'],
    help: '1 for the state in which the watch of a kind is: following, listing, failing or absent.',
  },
  watch_silence_seconds: {
    type: 'gauge',
    labels: ['kind'],
    help: 'Time since the watch of a kind has told anything; the server does so about once a minute.',
  },
  status_writes_total: {
    type: 'counter',
    labels: ['kind', 'outcome'],
    help: 'Writes of statuses: written, conflict (tried again), refused (left), failed (tried again).',
  },
  deployment_writes_total: {
    type: 'counter',
    labels: ['kind', 'change'],
    help: 'Objects of Gateways that were written: created, updated, deleted.',
  },
  deployment_failures_total: {
    type: 'counter',
    labels: ['outcome'],
    help: 'Deployments that the API server refused (told in the status of the Gateway), or that failed and are tried again.',
  },
  lease_held: { type: 'gauge', labels: [], help: '1 while this replica holds the lease.' },
  lease_epoch: { type: 'gauge', labels: [], help: 'Epoch of the newest holder in the log.' },
  lease_changes_total: {
    type: 'counter',
    labels: ['change'],
    help: 'How often this replica has acquired or lost the lease.',
  },
  digest_checks_total: {
    type: 'counter',
    labels: ['result'],
    help: 'Comparisons of the own state with that of another replica at the same position: equal, different.',
  },
  state_digest: {
    type: 'gauge',
    labels: ['desired', 'status'],
    help: 'Always 1; the labels are the digests of the current state.',
  },
  session_restarts_total: {
    type: 'counter',
    labels: [],
    help: 'How often the controller had to begin anew on its log.',
  },
  log_losses_total: {
    type: 'counter',
    labels: [],
    help: 'How often somebody else had removed events from the log.',
  },
  controller_resident_memory_bytes: { type: 'gauge', labels: [], help: 'Resident memory.' },
  controller_cpu_seconds_total: { type: 'counter', labels: [], help: 'User and system CPU time.' },
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

  /** Forgets all series of a metric, where labels tell a state. */
  clear(name: ControllerMetric): void {
    this.#values.delete(name)
  }

  /** `collect` is called before each scrape; returns the end of that. */
  collect(collect: () => void): () => void {
    this.#collectors.add(collect)
    return () => this.#collectors.delete(collect)
  }

  /** Prometheus text. */
  text(): string {
    for (const collect of this.#collectors) collect()
    const { user, system } = process.cpuUsage()
    this.set('controller_cpu_seconds_total', (user + system) / 1e6)
    this.set('controller_resident_memory_bytes', process.memoryUsage.rss())
    return Object.entries<MetricRow>(controllerMetrics)
      .map(([name, row]) => this.#textOf(name as ControllerMetric, row))
      .join('')
  }

  /** Empty for a metric without a series. */
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

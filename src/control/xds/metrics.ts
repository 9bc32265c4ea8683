/** Metrics of the configuration server; names get the prefix `sluice_`. */
import { metricHead } from '../../ground/base/prometheus.ts'

const pushBounds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30] as const

export class XdsCounters {
  responses = 0
  resources = 0
  bytes = 0
  acks = 0
  nacks = 0
  /** Rejected resources, counted once per reason. */
  rejects = 0
  authRequests = 0
  authFailures = 0
  streams = 0
  dropped = 0
  readonly #pushes: number[] = pushBounds.map(() => 0)
  #pushCount = 0
  #pushSum = 0

  /** Counts a push. `seconds` is the time from its start until its last part is acknowledged. */
  pushed(seconds: number): void {
    this.#pushCount++
    this.#pushSum += seconds
    const place = pushBounds.findIndex((bound) => seconds <= bound)
    if (place >= 0) this.#pushes[place] = (this.#pushes[place] ?? 0) + 1
  }

  /** Prometheus text of one histogram. */
  pushDuration(): string[] {
    let sum = 0
    const name = 'sluice_xds_push_duration_seconds'
    const buckets = pushBounds.map((bound, place) => {
      sum += this.#pushes[place] ?? 0
      return `${name}_bucket{le="${bound}"} ${sum}`
    })
    return [
      ...buckets,
      `${name}_bucket{le="+Inf"} ${this.#pushCount}`,
      `${name}_sum ${this.#pushSum}`,
      `${name}_count ${this.#pushCount}`,
    ]
  }
}

/** The current state, in addition to the counters. */
interface XdsGauges {
  readonly proxies: number
  readonly published: number
  readonly sequence: number
  readonly rejected: number
}

interface Row {
  readonly type: 'counter' | 'gauge'
  readonly help: string
  readonly read: (counters: XdsCounters, gauges: XdsGauges) => number
}

const counter = (help: string, read: (counters: XdsCounters) => number): Row => ({
  type: 'counter',
  help,
  read,
})
const gauge = (help: string, name: keyof XdsGauges): Row => ({
  type: 'gauge',
  help,
  read: (_, gauges) => gauges[name],
})

/** Each entry becomes a line of docs/metrics.md. */
export const xdsMetrics: Readonly<Record<string, Row>> = {
  xds_proxies: gauge('Connected proxies.', 'proxies'),
  xds_published_resources: gauge('Published resources.', 'published'),
  xds_sequence: gauge('Log position of the published configuration.', 'sequence'),
  xds_rejected_resources: gauge(
    'Resources that connected proxies currently reject, summed over proxies.',
    'rejected',
  ),
  xds_streams_total: counter('xDS streams opened by proxies.', (c) => c.streams),
  xds_responses_total: counter('xDS responses sent.', (c) => c.responses),
  xds_resources_total: counter('Resources and removals sent.', (c) => c.resources),
  xds_sent_bytes_total: counter('Bytes of xDS responses sent.', (c) => c.bytes),
  xds_acks_total: counter('ACKs: proxies applied the whole change set.', (c) => c.acks),
  xds_nacks_total: counter('NACKs: proxies rejected a resource of the change set.', (c) => c.nacks),
  xds_rejects_total: counter(
    'Resources rejected by proxies, counted once per reason.',
    (c) => c.rejects,
  ),
  xds_dropped_streams_total: counter(
    'Streams closed because the proxy did not respond in time.',
    (c) => c.dropped,
  ),
  xds_auth_rq_total: counter(
    'Streams for which a proxy had to authenticate.',
    (c) => c.authRequests,
  ),
  xds_auth_rq_success_total: counter(
    'Streams whose proxy authenticated successfully.',
    (c) => c.authRequests - c.authFailures,
  ),
  xds_auth_rq_failure_total: counter(
    'Streams whose proxy failed to authenticate.',
    (c) => c.authFailures,
  ),
}

export const pushDurationHelp = 'Time from sending a change set to the ACK of the proxy.'

/** Returns all metrics in Prometheus text format. */
export function writeXdsMetrics(counters: XdsCounters, gauges: XdsGauges): string {
  let text = ''
  for (const [name, { type, help, read }] of Object.entries(xdsMetrics)) {
    text += `${metricHead(`sluice_${name}`, type, help)}sluice_${name} ${read(counters, gauges)}\n`
  }
  const head = metricHead('sluice_xds_push_duration_seconds', 'histogram', pushDurationHelp)
  return `${text}${head}${counters.pushDuration().join('\n')}\n`
}

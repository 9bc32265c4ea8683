/** What the configuration server counts; names get the prefix `sluice_`. */
import { metricHead } from '../base/prometheus.ts'

const pushBounds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30] as const

export class XdsCounters {
  responses = 0
  resources = 0
  bytes = 0
  acks = 0
  nacks = 0
  /** Resources refused, each once for every reason. */
  rejects = 0
  authRequests = 0
  authFailures = 0
  streams = 0
  dropped = 0
  readonly #pushes: number[] = pushBounds.map(() => 0)
  #pushCount = 0
  #pushSum = 0

  /** Seconds from the first byte of a change set to the answer to its last part. */
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

/** What is true now, beside what was counted. */
interface XdsGauges {
  readonly proxies: number
  readonly published: number
  readonly sequence: number
  readonly rejected: number
}

interface Row {
  readonly name: string
  readonly type: 'counter' | 'gauge'
  readonly help: string
  readonly read: (counters: XdsCounters, gauges: XdsGauges) => number
}

const row = (name: string, type: Row['type'], help: string, read: Row['read']): Row => ({
  name,
  type,
  help,
  read,
})

/** One line of docs/metrics.md each. */
export const xdsMetrics: readonly Row[] = [
  row('xds_proxies', 'gauge', 'Connected proxies.', (_, now) => now.proxies),
  row('xds_published_resources', 'gauge', 'Published resources.', (_, now) => now.published),
  row(
    'xds_sequence',
    'gauge',
    'Log position of the published configuration.',
    (_, now) => now.sequence,
  ),
  row(
    'xds_rejected_resources',
    'gauge',
    'Resources that connected proxies currently reject, summed over proxies.',
    (_, now) => now.rejected,
  ),
  row('xds_streams_total', 'counter', 'xDS streams opened by proxies.', (c) => c.streams),
  row('xds_responses_total', 'counter', 'xDS responses sent.', (c) => c.responses),
  row('xds_resources_total', 'counter', 'Resources and removals sent.', (c) => c.resources),
  row('xds_sent_bytes_total', 'counter', 'Bytes of xDS responses sent.', (c) => c.bytes),
  row('xds_acks_total', 'counter', 'ACKs: proxies applied the whole change set.', (c) => c.acks),
  row(
    'xds_nacks_total',
    'counter',
    'NACKs: proxies rejected a resource of the change set.',
    (c) => c.nacks,
  ),
  row(
    'xds_rejects_total',
    'counter',
    'Resources rejected by proxies, counted once per reason.',
    (c) => c.rejects,
  ),
  row(
    'xds_dropped_streams_total',
    'counter',
    'Streams closed because the proxy did not answer in time.',
    (c) => c.dropped,
  ),
  row(
    'xds_auth_rq_total',
    'counter',
    'Streams for which a proxy had to authenticate.',
    (c) => c.authRequests,
  ),
  row(
    'xds_auth_rq_success_total',
    'counter',
    'Streams whose proxy authenticated successfully.',
    (c) => c.authRequests - c.authFailures,
  ),
  row(
    'xds_auth_rq_failure_total',
    'counter',
    'Streams whose proxy failed to authenticate.',
    (c) => c.authFailures,
  ),
]

export const pushDurationHelp = 'Time from sending a change set to the ACK of the proxy.'

/** Everything in Prometheus text format. */
export function writeXdsMetrics(counters: XdsCounters, gauges: XdsGauges): string {
  let text = ''
  for (const { name, type, help, read } of xdsMetrics) {
    text += `${metricHead(`sluice_${name}`, type, help)}sluice_${name} ${read(counters, gauges)}\n`
  }
  const head = metricHead('sluice_xds_push_duration_seconds', 'histogram', pushDurationHelp)
  return `${text}${head}${counters.pushDuration().join('\n')}\n`
}

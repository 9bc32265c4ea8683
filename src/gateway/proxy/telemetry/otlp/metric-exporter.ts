/**
 * Sends the metrics of a proxy to an OpenTelemetry collector from time to time. It runs in the main thread, which
 * carries no traffic. At most one export is under way. What a collector has not taken is part of the next export, so
 * that an outage costs only resolution in time.
 */
import type { MetricsSnapshot } from '../metric-definitions.ts'
import {
  type EncodedMetrics,
  type Exported,
  encodeMetrics,
  type HistogramKind,
  type Temporality,
} from './encode-metrics.ts'
import {
  type Answer,
  type OtlpProtocol,
  openTransport,
  type Transport,
  type TransportSettings,
} from './transports.ts'

export interface MetricExportSettings extends TransportSettings {
  readonly protocol: OtlpProtocol
  readonly temporality: Temporality
  readonly histograms: HistogramKind
  readonly intervalMs: number
  readonly resource: readonly (readonly [name: string, value: string])[]
}

interface ExporterOptions extends MetricExportSettings {
  readonly version: string
  readonly scrape: () => Promise<MetricsSnapshot>
  /** Called if an export fails, once until one succeeds again. */
  readonly onProblem: (text: string) => void
}

/** Maximum number of points in a request. */
const maxPoints = 4_000

const exportMethod = '/opentelemetry.proto.collector.metrics.v1.MetricsService/Export'

export class MetricExporter {
  readonly #options: ExporterOptions
  readonly #transport: Transport
  #timer: NodeJS.Timeout | undefined
  #before: Exported = { snapshot: {}, atMs: performance.timeOrigin }
  /** Deltas that the collector could not take. No others are made before it has them. */
  #unsent: readonly EncodedMetrics[] = []
  /** Exemplars up to this time have been exported. */
  #exemplarsAfterMs = 0
  #exporting: Promise<void> | undefined
  #isFailing = false
  #isClosed = false
  #exports = 0
  #failures = 0
  /** Points that the collector has refused. */
  #dropped = 0

  constructor(options: ExporterOptions) {
    this.#options = options
    this.#transport = openTransport(options, options.protocol, exportMethod)
  }

  start(): void {
    if (this.#isClosed) return
    this.#timer = setTimeout(
      () => this.#export().finally(() => this.start()),
      this.#options.intervalMs,
    )
    this.#timer.unref()
  }

  #export(): Promise<void> {
    this.#exporting ??= this.#sendAll().finally(() => {
      this.#exporting = undefined
    })
    return this.#exporting
  }

  async #sendAll(): Promise<void> {
    const { scrape, temporality } = this.#options
    if (!(await this.#sendParts(this.#unsent))) return
    const scrapedAtMs = Date.now()
    const now: Exported = { snapshot: await scrape(), atMs: Date.now() }
    const parts = [
      ...encodeMetrics(now, this.#before, {
        ...this.#options,
        isJson: this.#options.protocol === 'http/json',
        exemplarsAfterMs: this.#exemplarsAfterMs,
        maxPoints,
      }),
    ]
    this.#exemplarsAfterMs = scrapedAtMs
    if (temporality === 'delta') this.#before = now
    await this.#sendParts(parts)
  }

  /** Returns false if the collector cannot take them now. Deltas are kept, since later ones do not contain them. */
  async #sendParts(parts: readonly EncodedMetrics[]): Promise<boolean> {
    this.#unsent = []
    for (const [at, part] of parts.entries()) {
      const answer = await this.#transport.send(part.body)
      this.#count(part, answer)
      if (answer.isTaken || answer.isFinal) continue
      if (this.#options.temporality === 'delta') this.#unsent = parts.slice(at)
      return false
    }
    return true
  }

  #count({ points }: EncodedMetrics, answer: Answer): void {
    if (answer.isTaken) {
      this.#exports++
      this.#dropped += answer.rejected
    } else {
      this.#failures++
      if (answer.isFinal) this.#dropped += points
    }
    const problem = answer.isTaken && answer.rejected === 0 ? undefined : answer.message
    if (problem !== undefined && !this.#isFailing) this.#options.onProblem(problem)
    this.#isFailing = problem !== undefined
  }

  metrics(): MetricsSnapshot {
    const one = (value: number) => [{ labels: [], values: [value] }]
    return {
      metric_exports_total: one(this.#exports),
      metric_export_failures_total: one(this.#failures),
      metric_export_points_dropped_total: one(this.#dropped),
    }
  }

  /** Sends the last metrics once. Call it while the workers still answer, or after their last metrics. */
  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#timer)
    await this.#exporting
    await this.#export()
    this.#transport.close()
  }
}

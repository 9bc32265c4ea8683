/**
 * Sends the metrics of a proxy to an OpenTelemetry collector from time to time. It runs in the main thread, which
 * carries no traffic. At most one export is under way. What a collector has not taken is part of the next export, so
 * that an outage costs only resolution in time.
 */
import { request as httpsRequest } from 'node:https'
import { fromBinary } from '@bufbuild/protobuf'
import { ExportMetricsServiceResponseSchema } from '../../../../../proto/gen/called/otlp_metrics_pb.ts'
import { request as httpRequest } from '../../../../ground/base/node-http.ts'
import type { MetricsSnapshot } from '../metric-definitions.ts'
import {
  type EncodedMetrics,
  type Exported,
  encodeMetrics,
  type Temporality,
} from './encode-metrics.ts'

export interface MetricExportSettings {
  readonly endpoint: string
  /** Additional header fields, such as credentials. */
  readonly headers: Readonly<Record<string, string>>
  readonly temporality: Temporality
  readonly intervalMs: number
  readonly timeoutMs: number
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
const maxAnswerBytes = 65_536
/** Statuses after which the same data may be sent again (OTLP/HTTP). Others mean that it must be dropped. */
const retryable = new Set([429, 502, 503, 504])

type Answer =
  | { readonly isTaken: true; readonly rejected: number; readonly message: string }
  | Failure
interface Failure {
  readonly isTaken: false
  readonly isFinal: boolean
  readonly message: string
}

export class MetricExporter {
  readonly #options: ExporterOptions
  #timer: NodeJS.Timeout | undefined
  #before: Exported = { snapshot: {}, atMs: performance.timeOrigin }
  /** Deltas that the collector could not take. No others are made before it has them. */
  #unsent: readonly EncodedMetrics[] = []
  #exporting: Promise<void> | undefined
  #isFailing = false
  #isClosed = false
  #exports = 0
  #failures = 0
  /** Points that the collector has refused. */
  #dropped = 0

  constructor(options: ExporterOptions) {
    this.#options = options
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
    const now: Exported = { snapshot: await scrape(), atMs: Date.now() }
    const parts = [...encodeMetrics(now, this.#before, { ...this.#options, maxPoints })]
    if (temporality === 'delta') this.#before = now
    await this.#sendParts(parts)
  }

  /** Returns false if the collector cannot take them now. Deltas are kept, since later ones do not contain them. */
  async #sendParts(parts: readonly EncodedMetrics[]): Promise<boolean> {
    this.#unsent = []
    for (const [at, part] of parts.entries()) {
      const answer = await this.#send(part)
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

  #send({ body }: EncodedMetrics): Promise<Answer> {
    const { endpoint, headers, timeoutMs } = this.#options
    const fail = (message: string, isFinal = false): Answer => ({
      isTaken: false,
      isFinal,
      message,
    })
    return new Promise((resolve) => {
      const open = endpoint.startsWith('https:') ? httpsRequest : httpRequest
      const request = open(endpoint, {
        method: 'POST',
        agent: false,
        signal: AbortSignal.timeout(timeoutMs),
        headers: {
          ...headers,
          'content-type': 'application/x-protobuf',
          'content-length': body.length,
        },
      })
      request.once('error', (error) => resolve(fail(error.message)))
      request.once('response', (response) => {
        const { statusCode: status = 0 } = response
        const pieces: Buffer[] = []
        let bytes = 0
        response.on('data', (piece: Buffer) => {
          bytes += piece.length
          if (bytes <= maxAnswerBytes) pieces.push(piece)
        })
        response.once('error', (error) => resolve(fail(error.message)))
        response.once('end', () => {
          const isTaken = status >= 200 && status < 300
          if (isTaken) resolve({ isTaken, ...rejectedOf(Buffer.concat(pieces)) })
          else resolve(fail(`the collector answers with ${status}`, !retryable.has(status)))
        })
      })
      request.end(body)
    })
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
  }
}

/** Reads how many points a collector that answers with success has rejected. */
function rejectedOf(bytes: Buffer): { readonly rejected: number; readonly message: string } {
  try {
    const { partialSuccess } = fromBinary(ExportMetricsServiceResponseSchema, bytes)
    const { rejectedDataPoints = 0n, errorMessage = '' } = partialSuccess ?? {}
    const rejected = Math.max(0, Number(rejectedDataPoints))
    return { rejected, message: `the collector rejects ${rejected} points: ${errorMessage}` }
  } catch {
    return { rejected: 0, message: '' }
  }
}

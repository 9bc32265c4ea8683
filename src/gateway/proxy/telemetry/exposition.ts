/** Selects the format of scraped metrics by the header field `accept`. */
import { prometheusContentType } from '../../../ground/base/prometheus.ts'
import type { MetricsSnapshot } from './metric-definitions.ts'
import { writeOpenMetrics, writePrometheus } from './prometheus.ts'
import { writeProtobuf } from './prometheus-protobuf.ts'

/** Metrics, as a scraper gets them. */
export interface Exposition {
  readonly contentType: string
  readonly body: string | Uint8Array
}

interface Format {
  readonly contentType: string
  readonly write: (snapshot: MetricsSnapshot) => string | Uint8Array
  /** Media type, and parameters that it must have with these values, or none at all. */
  readonly type: string
  readonly required: Readonly<Record<string, string>>
  readonly optional: Readonly<Record<string, string>>
}

const text: Format = {
  contentType: prometheusContentType,
  write: writePrometheus,
  type: 'text/plain',
  required: {},
  optional: {},
}

const formats: readonly Format[] = [
  {
    contentType:
      'application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited',
    write: writeProtobuf,
    type: 'application/vnd.google.protobuf',
    required: { proto: 'io.prometheus.client.metricfamily', encoding: 'delimited' },
    optional: {},
  },
  {
    contentType: 'application/openmetrics-text; version=1.0.0; charset=utf-8',
    write: writeOpenMetrics,
    type: 'application/openmetrics-text',
    required: {},
    optional: { version: '1.0.0' },
  },
  text,
]

/** Returns the format that the scraper prefers. It is the text format of Prometheus if `accept` names no other. */
function formatFor(accept: string): Format {
  let best = { format: text, quality: 0 }
  for (const range of accept.toLowerCase().split(',')) {
    const [type = '', ...parts] = range.split(';').map((part) => part.trim())
    const parameters = new Map(parts.map((part) => [nameOf(part), textOf(part)]))
    const format = formats.find((one) => one.type === type && fits(one, parameters))
    const quality = Number(parameters.get('q') ?? 1)
    if (format !== undefined && quality > best.quality) best = { format, quality }
  }
  return best.format
}

const nameOf = (parameter: string) => parameter.split('=', 1)[0]?.trim() ?? ''
const textOf = (parameter: string) =>
  parameter
    .slice(parameter.indexOf('=') + 1)
    .trim()
    .replace(/^"|"$/g, '')

function fits({ required, optional }: Format, parameters: ReadonlyMap<string, string>): boolean {
  const isRight = ([name, value]: readonly [string, string]) => parameters.get(name) === value
  return (
    Object.entries(required).every(isRight) &&
    Object.entries(optional).every((one) => !parameters.has(one[0]) || isRight(one))
  )
}

/** Writes a snapshot in the format that the scraper prefers. */
export function expose(snapshot: MetricsSnapshot, accept = ''): Exposition {
  const { contentType, write } = formatFor(accept)
  return { contentType, body: write(snapshot) }
}

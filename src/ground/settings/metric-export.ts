/** The settings of the export of metrics and decision records. They have the names and meanings of the OpenTelemetry specification. */
import { row } from './table.ts'
import { count, exportInterval, oneOf, pairs, text, webUrl } from './types.ts'

export const metricExportSettings = {
  otlpEndpoint: row(webUrl, {
    env: 'OTEL_EXPORTER_OTLP_ENDPOINT',
    doc: 'URL of an OpenTelemetry collector for [metrics](operations/metrics-export.md), which are sent to `/v1/metrics` below it, unless the protocol is `grpc`. If neither this nor the next variable is set, no metrics are sent.',
  }),
  otlpMetricsEndpoint: row(webUrl, {
    env: 'OTEL_EXPORTER_OTLP_METRICS_ENDPOINT',
    doc: 'Whole URL for metrics, in place of the one above.',
  }),
  otlpProtocol: row(oneOf('grpc', 'http/protobuf', 'http/json'), {
    env: 'OTEL_EXPORTER_OTLP_PROTOCOL',
    default: 'http/protobuf',
    doc: 'How metrics and decision records are sent. `grpc` uses only the scheme, host and port of the endpoint.',
  }),
  otlpMetricsProtocol: row(oneOf('grpc', 'http/protobuf', 'http/json', 'none'), {
    env: 'OTEL_EXPORTER_OTLP_METRICS_PROTOCOL',
    doc: 'The same for metrics, in place of the one above. `none` sends none, even if an endpoint is set.',
  }),
  otlpHeaders: row(pairs, {
    env: 'OTEL_EXPORTER_OTLP_HEADERS',
    default: {},
    defaultText: 'none',
    doc: 'Header fields of requests to the collector, such as `authorization=Bearer%20KEY`.',
  }),
  otlpMetricsHeaders: row(pairs, {
    env: 'OTEL_EXPORTER_OTLP_METRICS_HEADERS',
    doc: 'The same for metrics, in place of all of the ones above.',
  }),
  otlpTemporality: row(oneOf('cumulative', 'delta', 'lowmemory'), {
    env: 'OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE',
    default: 'cumulative',
    doc: 'Whether counters and histograms count from the start of the process (`cumulative`), or since the last export (`delta`, and `lowmemory`, which is the same here).',
  }),
  otlpHistograms: row(oneOf('explicit_bucket_histogram', 'base2_exponential_bucket_histogram'), {
    env: 'OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION',
    default: 'explicit_bucket_histogram',
    doc: 'Whether histograms have the bounds of [metrics](metrics.md), or exponential buckets.',
  }),
  otlpIntervalMs: row(exportInterval, {
    env: 'OTEL_METRIC_EXPORT_INTERVAL',
    default: 60_000,
    doc: 'Milliseconds between two exports of metrics.',
  }),
  otlpTimeoutMs: row(exportInterval, {
    env: 'OTEL_METRIC_EXPORT_TIMEOUT',
    default: 30_000,
    doc: 'Milliseconds after which an export is given up. What it had is part of the next one.',
  }),
  otlpServiceName: row(text('a name'), {
    env: 'OTEL_SERVICE_NAME',
    default: 'sluice',
    doc: 'The resource attribute `service.name` of exported metrics and decision records.',
  }),
  otlpResource: row(pairs, {
    env: 'OTEL_RESOURCE_ATTRIBUTES',
    default: {},
    defaultText: 'none',
    doc: 'Further resource attributes of exported metrics and decision records, such as `deployment.environment=test`.',
  }),
  otlpLogsEndpoint: row(webUrl, {
    env: 'OTEL_EXPORTER_OTLP_LOGS_ENDPOINT',
    doc: 'Whole URL for decision records (`--record-export`), in place of `OTEL_EXPORTER_OTLP_ENDPOINT` with `/v1/logs`.',
  }),
  otlpLogsProtocol: row(oneOf('grpc', 'http/protobuf', 'http/json'), {
    env: 'OTEL_EXPORTER_OTLP_LOGS_PROTOCOL',
    doc: 'How decision records are sent, in place of `OTEL_EXPORTER_OTLP_PROTOCOL`.',
  }),
  otlpLogsHeaders: row(pairs, {
    env: 'OTEL_EXPORTER_OTLP_LOGS_HEADERS',
    doc: 'Header fields of requests with decision records, in place of all of `OTEL_EXPORTER_OTLP_HEADERS`.',
  }),
  otlpBatchDelayMs: row(exportInterval, {
    env: 'OTEL_BLRP_SCHEDULE_DELAY',
    default: 1_000,
    doc: 'Milliseconds that a decision record waits for others.',
  }),
  otlpBatchTimeoutMs: row(exportInterval, {
    env: 'OTEL_BLRP_EXPORT_TIMEOUT',
    default: 30_000,
    doc: 'Milliseconds after which a request with decision records is given up and sent again.',
  }),
  otlpQueueSize: row(count, {
    env: 'OTEL_BLRP_MAX_QUEUE_SIZE',
    default: 2_048,
    doc: 'Maximum number of decision records that wait for the collector. Further ones are dropped and counted.',
  }),
  otlpBatchSize: row(count, {
    env: 'OTEL_BLRP_MAX_EXPORT_BATCH_SIZE',
    default: 512,
    doc: 'Maximum number of decision records in a request.',
  }),
  otlpDisabled: row(oneOf('true', 'false'), {
    env: 'OTEL_SDK_DISABLED',
    default: 'false',
    doc: '`true` sends no metrics and no decision records, whatever the other variables are.',
  }),
} as const

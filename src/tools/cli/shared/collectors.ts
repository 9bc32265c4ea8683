/** The settings of the OpenTelemetry collector of a process that serves traffic. */
import { hostname } from 'node:os'
import { DecisionExporter } from '../../../gateway/proxy/telemetry/otlp/decision-exporter.ts'
import type { ProxyOptions } from '../../../gateway/proxy/workers/proxy-options.ts'
import type { settings as table } from '../../../ground/settings/index.ts'
import type { ValuesOf } from '../../../ground/settings/table.ts'
import type { OperationalLog } from './operational-log.ts'
import { UsageError } from './output.ts'
import { packageVersion } from './version.ts'

type Settings = ValuesOf<typeof table>

export function metricExport(settings: Settings): Pick<ProxyOptions, 'metricExport'> {
  const { otlpMetricsEndpoint, otlpHeaders, otlpMetricsHeaders } = settings
  const protocol = settings.otlpMetricsProtocol ?? settings.otlpProtocol
  const endpoint = otlpMetricsEndpoint ?? below(settings, '/v1/metrics')
  if (endpoint === undefined || protocol === 'none' || isDisabled(settings)) return {}
  return {
    metricExport: {
      endpoint,
      protocol,
      headers: otlpMetricsHeaders ?? otlpHeaders,
      temporality: settings.otlpTemporality === 'cumulative' ? 'cumulative' : 'delta',
      histograms:
        settings.otlpHistograms === 'explicit_bucket_histogram' ? 'explicit' : 'exponential',
      intervalMs: settings.otlpIntervalMs,
      timeoutMs: settings.otlpTimeoutMs,
      resource: resourceOf(settings),
    },
  }
}

/** @throws UsageError */
export function recordExporter(
  settings: Settings,
  log: OperationalLog,
): Pick<ProxyOptions, 'recordExporter'> {
  const { recordExport: fields, record, otlpLogsHeaders, otlpHeaders } = settings
  if (fields === 'off' || record === 'off' || isDisabled(settings)) return {}
  const endpoint = settings.otlpLogsEndpoint ?? below(settings, '/v1/logs')
  if (endpoint === undefined) {
    throw new UsageError(
      '--record-export needs OTEL_EXPORTER_OTLP_LOGS_ENDPOINT or OTEL_EXPORTER_OTLP_ENDPOINT',
    )
  }
  const recordExporter = new DecisionExporter({
    endpoint,
    protocol: settings.otlpLogsProtocol ?? settings.otlpProtocol,
    headers: otlpLogsHeaders ?? otlpHeaders,
    timeoutMs: settings.otlpBatchTimeoutMs,
    fields,
    limits: {
      maxWaiting: settings.otlpQueueSize,
      maxBatch: settings.otlpBatchSize,
      everyMs: settings.otlpBatchDelayMs,
    },
    resource: resourceOf(settings),
    version: packageVersion(),
    onProblem: (text) => log.write('warn', text, 'sluice::proxy'),
  })
  return { recordExporter }
}

const isDisabled = ({ otlpDisabled }: Settings): boolean => otlpDisabled === 'true'

const below = ({ otlpEndpoint }: Settings, path: string): string | undefined =>
  otlpEndpoint && `${otlpEndpoint.replace(/\/$/, '')}${path}`

function resourceOf(settings: Settings): [name: string, value: string][] {
  const known = {
    'service.name': settings.otlpServiceName,
    'service.version': packageVersion(),
    'service.instance.id': process.env.POD_NAME ?? `${hostname()}-${process.pid}`,
    'host.name': hostname(),
  }
  return Object.entries({ ...known, ...settings.otlpResource })
}

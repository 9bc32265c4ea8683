/** What every worker of a proxy is told alike when it starts. */
import type { AccessLogFormat } from '../telemetry/access-line.ts'
import type { WorkerSettings } from './worker-messages.ts'

type Alike = Omit<WorkerSettings, 'index' | 'rateMemory' | 'counts' | 'reusePort'>

interface Options extends Omit<Alike, 'accessLog'> {
  readonly accessLogFd?: number
  readonly accessLogFormat?: AccessLogFormat
}

/** Of the options of a proxy; what they leave open stays so. */
export function workerSettings(options: Options): Alike {
  const { bindAddress, accessLogFd = 1, accessLogFormat = 'text', destinations } = options
  const { clusterDomain, locality, maxBackendRequests, streamLimits, version, edge } = options
  const { nameServers, tlsSessionSeconds, limits } = options
  return {
    bindAddress,
    accessLog: { fd: accessLogFd, format: accessLogFormat },
    destinations,
    ...(clusterDomain !== undefined && { clusterDomain }),
    ...(nameServers !== undefined && { nameServers }),
    ...(locality !== undefined && { locality }),
    ...(maxBackendRequests !== undefined && { maxBackendRequests }),
    ...(streamLimits !== undefined && { streamLimits }),
    ...(limits !== undefined && { limits }),
    ...(version !== undefined && { version }),
    ...(tlsSessionSeconds !== undefined && { tlsSessionSeconds }),
    ...(edge !== undefined && { edge }),
  }
}

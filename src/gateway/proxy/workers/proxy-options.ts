/** What a proxy is started with, and what it tells the process. */
import type { ConfigChannel } from '../../../control/wire/channel.ts'
import type { AnswerValues } from '../../../ground/model/answer-values.ts'
import type { ConnectLedger } from '../../../ground/model/budgets.ts'
import type { ReportEnded } from '../../../ground/model/ended-sessions.ts'
import type { GrantStore } from '../../../ground/model/grants.ts'
import type { ReportList } from '../../../ground/model/mcp-lists.ts'
import type { ConnectSeries } from '../../../ground/model/series.ts'
import type { LevelControl } from '../admin/routes.ts'
import type { MetricsSnapshot } from '../telemetry/metric-definitions.ts'
import type { MetricExportSettings } from '../telemetry/otlp/metric-exporter.ts'
import type { HealthChange } from '../upstream/checked-backend.ts'
import type { RecordOptions } from './decision-records.ts'
import type { CatalogEvent } from './model-catalogs.ts'
import type { PortName, WorkerRejection } from './worker-messages.ts'
import type { TrafficSettings } from './worker-settings.ts'

/** Events for the operational log. */
export type ProxyEvent =
  | { readonly type: 'ready' }
  | { readonly type: 'listening'; readonly port: PortName }
  | { readonly type: 'port-lost'; readonly port: PortName }
  | { readonly type: 'rejected'; readonly rejection: WorkerRejection }
  | {
      readonly type: 'worker-died'
      readonly worker: number
      readonly error: Error
      readonly restartMs: number
    }
  /** Active health checks found that an endpoint is unhealthy, or healthy again. */
  | { readonly type: 'health'; readonly change: HealthChange }
  /** A worker met a bug, but still runs. */
  | { readonly type: 'fault'; readonly worker: number; readonly message: string }
  /** Decisions about requests are not recorded. */
  | { readonly type: 'not-recording'; readonly error: Error }
  /** Time series are lost, because they cannot be written. */
  | { readonly type: 'series-not-written'; readonly error: Error }
  /** Metrics could not be sent to a collector. */
  | { readonly type: 'metrics-not-exported'; readonly message: string }
  /** A removed grant of a user may still be valid at its service. */
  | { readonly type: 'grant-not-revoked'; readonly service: string; readonly problem: string }
  | CatalogEvent
  /** POST /quitquitquit was received: the process should drain the proxy and end. */
  | { readonly type: 'quit-requested' }

export interface ProxyOptions extends TrafficSettings {
  /** Stable name of the proxy in acks and rejections. */
  readonly name?: string
  /** Number of worker threads. `auto` means one per processor if workers can share ports, otherwise one. */
  readonly workers?: number | 'auto'
  /** Addresses are `host:port`, `:port` or `off`. Port 0 selects a free port. */
  readonly adminAddress: string
  readonly statsAddress: string
  readonly readinessAddress: string
  /** What to record of decisions about requests, and where; nothing if omitted. */
  readonly records?: RecordOptions
  /** Folder for the time series; if omitted, they are in memory only. */
  readonly seriesFolder?: string
  /** Connects the time series to a controller. */
  readonly connectSeries?: ConnectSeries
  /** Publishes the blocks of decision records; if omitted, they are only on disk. */
  readonly publisher?: BlockPublisher
  /** Sends decision records to a collector. */
  readonly recordExporter?: BlockPublisher
  /** Sends blocks of decision records to a controller. */
  readonly reportRecords?: (block: Uint8Array, isSample: boolean) => void
  /** The ledger of budgets; if omitted, requests under a budget are refused. */
  readonly ledger?: LedgerOfProxy
  /** Receives what MCP servers list; if omitted, that is not recorded. */
  readonly reportList?: ReportList
  /** Receives which sessions of users have ended; if omitted, only this proxy knows it. */
  readonly reportEnded?: ReportEnded
  /** What users allow the gateway to do for them; if omitted, backends that need it cannot be used. */
  readonly grants?: GrantStore
  /** Store of the answers of models, if it is NATS. */
  readonly answers?: AnswerValues
  /** Paths of catalogs of language models, of which the later ones win. */
  readonly modelCatalogs?: readonly string[]
  /** Where metrics are sent; if omitted, they are only scraped. */
  readonly metricExport?: MetricExportSettings
  readonly drain?: { readonly minMs: number; readonly maxMs: number }
  readonly channel: ConfigChannel
  readonly log?: LevelControl
  /** Additional metrics of the process. */
  readonly moreMetrics?: () => MetricsSnapshot
  /** Returns names of missing parts without which the proxy still serves, for the readiness response. */
  readonly without?: () => readonly string[]
  readonly onEvent?: (event: ProxyEvent) => void
}

interface LedgerOfProxy {
  readonly connect: ConnectLedger
  /** Whether no other proxy shares the budgets. */
  readonly isSole: boolean
}

interface BlockPublisher {
  publish(block: Uint8Array): void
  metrics(): MetricsSnapshot
  close(): Promise<void>
}

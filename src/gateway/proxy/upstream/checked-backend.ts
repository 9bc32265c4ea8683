/** What active health checks probe, and what they report. Types only. */
import type { ConnectionSettings, UpstreamVersion } from '../../../ground/exchange/connection.ts'
import type { EndpointSet } from './endpoint.ts'
import type { UpstreamProfiles } from './profile.ts'

/** A backend as its endpoints are probed. */
export interface CheckedBackend {
  /** Name in the log and in metrics. */
  readonly label: string
  readonly settings: ConnectionSettings
  readonly profiles: UpstreamProfiles
  readonly host: string
  readonly port: number
  readonly version: UpstreamVersion
  /** Finds the endpoints that requests may be sent to now. */
  find(): EndpointSet | Promise<EndpointSet>
}

export interface HealthChange {
  readonly backend: string
  /** `host:port` */
  readonly endpoint: string
  readonly isHealthy: boolean
  /** Why the last probe failed, if it did. */
  readonly problem: string | undefined
}

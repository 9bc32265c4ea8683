import type { EngineLimits, StreamLimits } from '../../../engines/http/limits/engine-limits.ts'
import type { DataPlaneSettings } from '../plane-runtime.ts'
import type { RateMemory } from '../rate-buckets.ts'
import type { AmbiguousPaths } from '../request/request-path.ts'
import type { AccessLogFormat } from '../telemetry/access-line.ts'
import type { RecordSettings } from './decision-records.ts'
import type { SharedCounts } from './shared-counts.ts'

/** Settings for client connections: which proxies are trusted, and how many connections are accepted. */
interface EdgeSettings {
  /** Addresses and CIDRs of proxies whose X-Forwarded-For is trusted. */
  readonly trustedProxies: readonly string[]
  readonly ambiguousPaths?: AmbiguousPaths
  /** Addresses and CIDRs of clients whose connections begin with a PROXY protocol header. */
  readonly proxyProtocolFrom: readonly string[]
  /** Maximum number of client connections of all workers together. */
  readonly maxConnections?: number
  /** Key that encrypts sessions. If omitted, the control plane's key is used. */
  readonly sessionKey?: Uint8Array
}

type PlaneSettings =
  | 'destinations'
  | 'clusterDomain'
  | 'nameServers'
  | 'version'
  | 'locality'
  | 'stdio'
  | 'answerCacheBytes'
  | 'answerServer'
  | 'forwardProxies'

/** Settings that all workers of a proxy share. */
export interface TrafficSettings extends Pick<DataPlaneSettings, PlaneSettings> {
  /** IP address that listener ports are bound to. */
  readonly bindAddress: string
  /** File descriptor of the access log; standard output if omitted. */
  readonly accessLogFd?: number
  /** Format of the access log; text if omitted. */
  readonly accessLogFormat?: AccessLogFormat
  /** Maximum number of concurrent requests to one address of a backend; no limit if omitted. */
  readonly maxBackendRequests?: number
  /** Limits of connections that are forwarded without being read; the engine's defaults if omitted. */
  readonly streamLimits?: Partial<StreamLimits>
  /** Limits of requests unless a policy sets them; the engine's defaults if omitted. */
  readonly limits?: Partial<EngineLimits>
  /** How long TLS sessions can be resumed. The keys of session tickets are rotated accordingly. */
  readonly tlsSessionSeconds?: number
  /** If omitted, no proxy is trusted and connections are not limited. */
  readonly edge?: EdgeSettings
}

/** The first message to a worker. */
export interface WorkerSettings extends TrafficSettings {
  readonly index: number
  /** What to record of decisions about requests; nothing if omitted. */
  readonly record?: RecordSettings
  /** Whether several workers share each port. */
  readonly reusePort: boolean
  /** Shared memory of the rate limits of all workers. */
  readonly rateMemory: RateMemory
  readonly counts: SharedCounts
}

/** Returns the settings that are sent to threads. Other options cannot be cloned, for example functions. */
export function trafficSettings(options: TrafficSettings): TrafficSettings {
  const { bindAddress, accessLogFd, accessLogFormat, destinations, clusterDomain } = options
  const { nameServers, version, locality, maxBackendRequests } = options
  const { streamLimits, limits, tlsSessionSeconds, edge, stdio } = options
  const { answerCacheBytes, answerServer, forwardProxies } = options
  return {
    bindAddress,
    accessLogFd,
    accessLogFormat,
    destinations,
    clusterDomain,
    nameServers,
    forwardProxies,
    version,
    locality,
    maxBackendRequests,
    streamLimits,
    limits,
    tlsSessionSeconds,
    edge,
    stdio,
    answerCacheBytes,
    answerServer,
  } satisfies { readonly [Name in keyof Required<TrafficSettings>]: TrafficSettings[Name] }
}

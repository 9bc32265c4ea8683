/** What the main thread and its workers tell each other. */

import type { EngineLimits, StreamLimits } from '../../engine/limits/engine-limits.ts'
import type { TicketSecrets } from '../../engine/tls/session-tickets.ts'
import type { Rejection } from '../../wire/channel.ts'
import type { AmbiguousPaths } from '../request/request-path.ts'
import type { AccessLogFormat } from '../telemetry/access-line.ts'
import type { MetricsSnapshot } from '../telemetry/metric-definitions.ts'
import type { DestinationRules } from '../upstream/destination-rules.ts'
import type { Locality } from '../upstream/locality.ts'
import type { SharedCounts } from './shared-counts.ts'

/** A TCP port by its number, a UDP port by its number and the word. */
export type PortName = number | `${number}/udp`

/** Who is believed, and how many are let in. */
export interface EdgeSettings {
  /** Addresses and CIDRs whose X-Forwarded-For is believed. */
  readonly trustedProxies: readonly string[]
  readonly ambiguousPaths?: AmbiguousPaths
  /** Addresses and CIDRs whose connections begin with a PROXY header. */
  readonly proxyProtocolFrom: readonly string[]
  /** Of all workers together. */
  readonly maxConnections?: number
  /** MCP sessions that were sealed with it are carried on; the control plane's key where absent. */
  readonly sessionKey?: Uint8Array
}

/** Given to a worker when it starts. */
export interface WorkerSettings {
  /** IP address on which listener ports are bound. */
  readonly bindAddress: string
  /** Do several workers share each port? */
  readonly reusePort: boolean
  readonly accessLog: { readonly fd: number; readonly format: AccessLogFormat }
  /** What a dynamic forward proxy may reach. */
  readonly destinations: DestinationRules
  readonly clusterDomain?: string
  /** DNS servers that are asked in place of the machine's. */
  readonly nameServers?: readonly string[]
  /** Of the product, for spans. */
  readonly version?: string
  /** In which all workers keep their rate limits. */
  readonly rateMemory: WebAssembly.Memory
  readonly counts: SharedCounts
  /** The place of this worker. */
  readonly index: number
  readonly locality?: Locality
  readonly maxBackendRequests?: number
  readonly streamLimits?: Partial<StreamLimits>
  readonly limits?: Partial<EngineLimits>
  /** How long TLS sessions can be resumed. */
  readonly tlsSessionSeconds?: number
  readonly edge?: EdgeSettings
}

export type ToWorker =
  | {
      readonly type: 'config'
      readonly sequence: number
      readonly bytes: Uint8Array<SharedArrayBuffer>
      /** Put in force before `bytes`; see ConfigUpdate. */
      readonly base?: Uint8Array<SharedArrayBuffer>
    }
  /** Answer to `claim`: may the port be bound? */
  | { readonly type: 'claimed'; readonly port: PortName; readonly problem?: string }
  /** In place of those before: what session tickets of TLS are sealed and opened with. */
  | { readonly type: 'tickets'; readonly secrets: TicketSecrets }
  | { readonly type: 'scrape'; readonly id: number }
  /** The process is about to end: write the access log out, then add one to the gate. */
  | { readonly type: 'flush'; readonly gate: Int32Array<SharedArrayBuffer> }
  | { readonly type: 'drain'; readonly minMs: number; readonly maxMs: number }

/** A resource that the worker does not have in force. */
export interface WorkerRejection extends Rejection {
  /** Position of the change set that brought the resource. */
  readonly sequence: number
}

/** Everything that is true of a worker now; each one replaces the one before. */
export interface WorkerState {
  /** Position up to which the configuration is in force. */
  readonly sequence: number
  readonly rejected: readonly WorkerRejection[]
  readonly bound: readonly PortName[]
  /** Ports that listeners want and that could not be bound. */
  readonly unbound: readonly PortName[]
}

/** In place of a scrape's id: nobody has asked, but it is the last chance to tell. */
export const lastMetrics = 0

export type FromWorker =
  /** `rateOwner`: whose locks to free in the memory of rate limits once the thread is dead. */
  | { readonly type: 'started'; readonly rateOwner: number }
  | { readonly type: 'state'; readonly state: WorkerState }
  | { readonly type: 'claim'; readonly port: PortName }
  | { readonly type: 'released'; readonly port: PortName }
  | { readonly type: 'metrics'; readonly id: number; readonly snapshot: MetricsSnapshot }
  /** Something went wrong that is nobody's configuration: a bug. */
  | { readonly type: 'fault'; readonly message: string }
  | { readonly type: 'drained' }

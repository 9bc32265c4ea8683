/** What the control plane is put together from, and what differs between one machine and a cluster. */
import type { ResourceEvent, SluiceEvent } from '../../events/index.ts'
import type { Fold, FoldChange } from '../actors/fold.ts'
import type { Clock } from '../base/clock.ts'
import type { Lease, LeaseOptions } from '../lease/index.ts'
import type { DesiredDelta } from '../model/resources.ts'
import type { ObserveOptions } from '../watch/observed.ts'
import type { ResourceIndex } from '../watch/resource-index.ts'
import type { ProxyAnswers } from '../xds/answers.ts'
import type { AppendQueue } from './append-queue.ts'
import type { ControllerMetrics } from './controller/metrics.ts'
import type { OpenedLog } from './open-log.ts'

export type Severity = 'debug' | 'info' | 'warn' | 'error'

/** Where configuration is observed. Every replica observes; the one that writes the log appends. */
export interface Source {
  /** Begins to observe. Resolves once everything was observed once. */
  start(): Promise<void>
  /** Could this replica append a complete listing now? */
  readonly isListed: boolean
  /** Appends from now on: first every difference to `index`, which it keeps up to date. */
  lead(index: ResourceIndex, epoch: number): Promise<void>
  /** Appends no more. */
  follow(): void
  /** Digests of all secret values that the source has at present. */
  secretDigests(): Set<string>
  close(): Promise<void>
}

/** The way to proxies. */
interface Channel {
  publish(delta: DesiredDelta): void
  close?(): Promise<void>
}

/** Where decisions go back to. Only one replica writes there at a time. */
export interface Sinks {
  folded(event: SluiceEvent): void
  decided(change: FoldChange): void
  /** This replica writes from now on; everything that is decided so far is folded. */
  lead(): void
  /** Another replica writes from now on. */
  follow(): void
  close(): Promise<void>
}

export interface Parts {
  readonly source: Source
  readonly channel: Channel
  readonly sinks?: Sinks
}

/** What source, channel and sinks may use of the control plane, once they are started. */
export interface Plane {
  readonly fold: Fold
  /** What the log knows of the source. */
  readonly index: ResourceIndex
  readonly writer: AppendQueue
  /** Takes what proxies answer. */
  readonly recorder: ProxyAnswers
  /** What every kind of source is given. */
  readonly sourceOptions: ObserveOptions & {
    readonly clock: Clock
    readonly cluster: string
    /** Takes events in order, to be appended all or none; resolves once they are in the log. */
    onChange(events: readonly ResourceEvent[]): Promise<void>
  }
  /** The epoch under which this replica may write the log now. */
  logEpoch(): number | undefined
  /** May the sinks write now? */
  isWriting(): boolean
}

export type OpenLease = (options: Omit<LeaseOptions, 'durationMs' | 'onProblem'>) => Lease

export interface ControlPlaneOptions<Chosen extends Parts = Parts> {
  readonly log: OpenedLog
  /** The `source` attribute of observations. */
  readonly sourceName: string
  /** Makes source, channel and sinks. They may use the control plane once they are started. */
  readonly parts: (plane: Plane) => Chosen
  /** If omitted, no other process writes, neither the log nor where the sinks write. */
  readonly lease?: OpenLease
  readonly leaseDurationMs: number
  /** How long `list` waits for the lease before it goes by what other replicas have listed. */
  readonly leaseWaitMs?: number
  /** Name of this replica. If omitted, there is only one. */
  readonly replica?: string
  /** Recorded with the lease, if each replica is given the key of secret digests by its operator. */
  readonly keyName?: string
  /** Last part of the names of Services. */
  readonly clusterDomain: string
  /** Events to keep before the last snapshot. All of them, if 0 or omitted. */
  readonly logRetention?: number
  readonly metrics: Pick<ControllerMetrics, 'add'>
  readonly notify: (severity: Severity, text: string) => void
  /** A bug: published configuration may be stale from here on. */
  readonly onFault: (error: unknown) => void
  /** Why the start waits for other replicas; undefined when it goes on. */
  readonly onWait?: (reason: string | undefined) => void
  /** Aborts the wait for other replicas. */
  readonly signal?: AbortSignal
}

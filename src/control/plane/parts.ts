/** The parts of the control plane that differ between one machine and a cluster. */

import type { ProtectionSetData, ResourceEvent, SluiceEvent } from '../../../events/index.ts'
import type { Diversion } from '../../ground/model/diversion.ts'
import type { EndedEntry } from '../../ground/model/ended-sessions.ts'
import type { DesiredDelta, VersionedResource } from '../../ground/model/resources.ts'
import type { Judge, JudgeOptions } from '../../past/what-if/judge.ts'
import type { Fold, FoldChange } from '../actors/fold.ts'
import type { TimersOptions } from '../effects/timers.ts'
import type { Lease, LeaseOptions } from '../lease/lease.ts'
import type { ObserveOptions } from '../watch/observed.ts'
import type { ResourceIndex } from '../watch/resource-index.ts'
import type { ProxyReports } from '../xds/delivery-recorder.ts'
import type { AppendQueue } from './append-queue.ts'
import type { BudgetLedger } from './budget-ledger.ts'
import type { CertificateProblem } from './certificate-dates.ts'
import type { ControllerMetrics } from './controller/metrics.ts'
import type { OpenedLog } from './open-log.ts'
import type { RolloutTargets } from './rollout/targets.ts'

export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

/** Where configuration is observed. Every replica observes; the one that writes the log appends. */
export interface ResourceSource {
  /** Begins to observe. Resolves once every object was observed. */
  start(): Promise<void>
  /** Whether this replica could append a complete listing now. */
  readonly isListed: boolean
  /** Begins to append: first every difference from `index`, then later changes. Updates `index` with each. */
  lead(index: ResourceIndex, epoch: number): Promise<void>
  /** Stops appending. */
  follow(): void
  /** Digests of all secret values that the source has now. */
  secretDigests(): Set<string>
  /** Observes the objects again that have these secret values, since the values are missing. */
  observeAgain(digests: ReadonlySet<string>): void
  close(): Promise<void>
}

/** Sends published changes to proxies. */
interface Channel {
  /**
   * Sends a change set. The proxies that `diversion` names get its state instead; if it is null, none do, and if
   * omitted, the same as before.
   */
  publish(delta: DesiredDelta, diversion?: Diversion | null): void
  /** Sends resources of the first state before it is complete. Proxies apply them but do not serve them yet. */
  prepare?(resources: readonly VersionedResource[]): void
  /** Sends sessions and tokens that are refused, before the configuration that comes after them. */
  endSessions?(entries: readonly EndedEntry[]): void
  close?(): Promise<void>
}

/** Writes decisions outside the log. Only one replica writes at a time. */
export interface Sinks {
  folded(event: SluiceEvent): void
  decided(change: FoldChange): void
  /** Called when certificates were checked, with all problems and with the new ones. */
  certificates(all: readonly CertificateProblem[], fresh: readonly CertificateProblem[]): void
  /** Called when this replica begins to write; all earlier events are folded by then. */
  lead(): void
  /** Called when this replica stops writing. */
  follow(): void
  close(): Promise<void>
}

export interface ControlPlaneParts {
  readonly source: ResourceSource
  readonly channel: Channel
  /** Learns which budgets are configured. */
  readonly ledger?: Pick<BudgetLedger, 'publish' | 'close'>
  readonly sinks?: Sinks
  /** Which proxies can get a change before others. If omitted, a change reaches all together. */
  readonly targets?: RolloutTargets
}

/** What source, channel and sinks can use of the control plane, once they are started. */
export interface StartedPlane {
  readonly fold: Fold
  /** The objects of the source in the log. */
  readonly index: ResourceIndex
  readonly writer: AppendQueue
  /** Records what proxies acknowledge and reject. */
  readonly recorder: ProxyReports
  /** Options of every kind of source. */
  readonly sourceOptions: ObserveOptions & {
    /** Called with events to append, in order and all or none. Resolves once they are in the log. */
    onChange(events: readonly ResourceEvent[]): Promise<void>
  }
  /** The epoch under which this replica may write the log now; undefined if it may not. */
  logEpoch(): number | undefined
  /**
   * Whether the log has a position that is not published here yet; true if the log cannot be read now. A
   * proxy with a newer position of a log that was lost is not ahead.
   */
  isBehind(position: number): Promise<boolean>
  /** Whether the sinks may write now. */
  isWriting(): boolean
  /** The value of a secret by its digest; undefined if it is unknown. */
  secretValue(digest: string): Uint8Array | undefined
}

export type OpenLease = (options: Omit<LeaseOptions, 'store' | 'durationMs' | 'onProblem'>) => Lease

/** How changes are judged. */
export interface JudgingOptions {
  /** Mode of Gateways whose parameters have no `changeProtection`. If omitted, that of the log stays. */
  readonly mode?: ProtectionSetData['mode']
  /** Finds the newest recorded requests; called before each judgement. If omitted, there are none. */
  readonly records?: () => Promise<JudgeOptions['records']>
  readonly simulator?: () => JudgeOptions['simulator']
  /** Loads the prices of models. If omitted, no model has one. */
  readonly catalog?: JudgeOptions['catalog']
  /** Loads the judge. If omitted, it is loaded when the first change waits. */
  readonly load?: () => Promise<typeof Judge>
}

export interface ControlPlaneOptions<Chosen extends ControlPlaneParts = ControlPlaneParts> {
  readonly log: OpenedLog
  /** The `source` attribute of observations. */
  readonly sourceName: string
  /** Creates source, channel and sinks. They may use the control plane once they are started. */
  readonly parts: (plane: StartedPlane) => Chosen
  /** Opens the lease that decides which replica writes. If omitted, this process always writes. */
  readonly lease?: OpenLease
  readonly leaseDurationMs: number
  /** How long `list` waits for the lease before it relies on the listing of other replicas. */
  readonly leaseWaitMs?: number
  /** Name of this replica. If omitted, there is only one. */
  readonly replica?: string
  /** Name of the key of secret digests, recorded with the lease if operators configure the key. */
  readonly keyName?: string
  /** DNS domain of the cluster: the last part of the names of Services. */
  readonly clusterDomain: string
  /** Number of events to keep before the last snapshot. If 0 or omitted, all are kept. */
  readonly logRetention?: number
  /** Number of events between two snapshots, and between two comparisons of digests, which tests shorten. */
  readonly every?: { readonly snapshot?: number; readonly digests?: number }
  /** Clock and grace period of the timers, which tests shorten. */
  readonly timing?: Pick<TimersOptions, 'clock' | 'graceMs'>
  /** How changes are judged that wait under `changeProtection`. */
  readonly judging?: JudgingOptions
  readonly metrics: Pick<ControllerMetrics, 'add'>
  readonly notify: (severity: LogLevel, text: string) => void
  /** Called after a bug: published configuration may be stale from now on. */
  readonly onFault: (error: unknown) => void
  /** Called with the reason while the start waits for other replicas, then with undefined. */
  readonly onWait?: (reason: string | undefined) => void
  /** Aborts the wait for other replicas. */
  readonly signal?: AbortSignal
}

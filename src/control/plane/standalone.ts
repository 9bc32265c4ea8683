/**
 * `sluice run`: the control plane on one machine, with its proxy. Manifests are the source, the log
 * is a file (or shared on a NATS server, with a lease there), and the channel is memory.
 */

import { randomUUID } from 'node:crypto'
import { dirname } from 'node:path'
import { setTimeout as after } from 'node:timers/promises'
import { DamagedEventError, UnknownEventTypeError } from '../../../events/index.ts'
import type { MetricsSnapshot } from '../../gateway/proxy/telemetry/metric-definitions.ts'
import { workerCount } from '../../gateway/proxy/workers/prepared-threads.ts'
import type { ProxyOptions } from '../../gateway/proxy/workers/proxy-options.ts'
import { type RunningProxy, startProxy } from '../../gateway/proxy/workers/supervisor.ts'
import { trimWhenIdle } from '../../ground/base/idle-trim.ts'
import { within } from '../../ground/base/within.ts'
import type { HasEnded } from '../../ground/model/ended-sessions.ts'
import { defaultClusterDomain } from '../../ground/model/service-host.ts'
import { type Fold, type FoldChange, foldVersion } from '../actors/fold.ts'
import { Lease } from '../lease/lease.ts'
import { NatsLeaseStore } from '../lease/nats.ts'
import { type EventLog, LogError } from '../log/index.ts'
import { FileRecords } from '../watch/file-records.ts'
import { FileSource } from '../watch/files.ts'
import type { SourceProblem } from '../watch/source-problem.ts'
import { InProcessChannel } from '../xds/channel.ts'
import { builtInObjects, objectsWithStdio } from './api-binding.ts'
import { BudgetLedger } from './budget-ledger.ts'
import { warningHost } from './budget-warnings.ts'
import { type ControlPlane, openControlPlane } from './control-plane.ts'
import { EndedRecorder } from './ended-recorder.ts'
import {
  isDamage,
  type OpenedLog,
  type OpenLogOptions,
  openLog,
  type SharedLog,
  tooNewText,
} from './open-log.ts'
import type { ControlPlaneOptions, OpenLease, Sinks } from './parts.ts'
import { reachableAddress } from './reachable-address.ts'
import { recordedRequests } from './recorded-requests.ts'
import { type RolloutTargets, workerTargets } from './rollout/targets.ts'
import { WorkerFigures } from './rollout/worker-figures.ts'
import { ToolsRecorder } from './tools-recorder.ts'

interface StandaloneOptions
  extends OpenLogOptions,
    Pick<ControlPlaneOptions, 'notify' | 'onFault'> {
  /** Files and folders with manifests. */
  readonly paths: readonly string[]
  /** Duration of the lease, if the log is shared. Default 15 s. */
  readonly leaseDurationMs?: number
  /** How long events of the ledger of budgets are kept. If 0 or omitted, all are kept. */
  readonly ledgerRetentionMs?: number
  /** How changes are judged on recorded requests before they take effect. */
  readonly changeProtection?: keyof typeof protectionModes
  readonly proxy: Omit<ProxyOptions, 'channel' | 'name'>
  /** Set if commands of MCP targets run: why they have network access, or empty if they have none. */
  readonly stdioNetwork?: string
  /** Version of the program, recorded as that of its proxy. */
  readonly version: string
  onProblem(problem: SourceProblem): void
  /** Learns the first state once it is complete, and then the decisions about every change. */
  readonly conditions?: {
    begin(fold: Fold): void
    decided(change: FoldChange): void
  }
}

export interface Standalone {
  readonly proxy: RunningProxy
  readonly log: EventLog
  readonly logPath: string | undefined
  /** Whether a session of a user has ended, by events of the log. */
  readonly hasEnded: HasEnded
  /**
   * Drains the proxy, stores a snapshot and closes the log. Resolves to false if the log does not answer in
   * time: history is lost, and connections to the log may still be open.
   */
  stop(): Promise<boolean>
}

const protectionModes = { off: 'Off', warn: 'Warn', hold: 'Hold' } as const

const soleProxy = 'local'
const defaultLeaseMs = 15_000
/** How long the start waits for the lease and for key sets, which may also arrive later. */
const firstWaitMs = 2_000
/** How long the first decisions may wait for the proxy, so that it serves before thousands are recorded. */
const recordWaitMs = 5_000
/** How long `stop` waits for a log that does not answer; platforms wait longer before they kill a process. */
const closeLimitMs = 4_000

/**
 * Starts the gateway. If the events in a log file turn out to be damaged while it starts, it starts again with an
 * empty log: only history is lost.
 */
export async function startStandalone(options: StandaloneOptions): Promise<Standalone> {
  const log = await openLog(options.paths, options)
  try {
    return await startOn(log, options)
  } catch (error) {
    if (!isDamage(error) || log.discard === undefined) throw error
    log.discard(error.message)
  }
  return startOn(await openLog(options.paths, options), options)
}

/** Starts the gateway with an open log, which is closed if the start fails. */
async function startOn(log: OpenedLog, options: StandaloneOptions): Promise<Standalone> {
  const digestChecks = new DigestCheckCounts()
  const running = Promise.withResolvers<RunningProxy>()
  const name = log.shared?.replica ?? soleProxy
  const plane = await openPlane(options, log, digestChecks, (fold) => {
    const figures = new WorkerFigures(name, async () => (await running.promise).metricsOfWorkers())
    const { workers } = options.proxy
    return workerTargets(fold, name, workerCount(workers), (_, __, fromMs) => figures.read(fromMs))
  })
  const reading = plane.read()
  const started = Promise.withResolvers<void>()
  const end = watchLog(options, plane, reading, log.discard && started.promise)
  const tools = new ToolsRecorder(plane)
  const endings = new EndedRecorder(plane)
  // The threads load while the configuration is read.
  const starting = startProxy({
    ...options.proxy,
    name,
    channel: plane.parts.channel,
    ledger: { connect: plane.parts.ledger.connect, isSole: !plane.isShared },
    reportList: (report) => tools.report(name, report),
    reportEnded: (report) => endings.report(name, report),
    moreMetrics: () => ({
      ...(plane.isShared && digestChecks.snapshot()),
      ...plane.parts.ledger.metrics(),
      ...end.metrics(),
    }),
    without: end.missing,
  })
  const listing = reading.then(() => list(plane, log, name, options))
  const [proxy] = await Promise.race([Promise.all([starting, listing]), damageOf(plane)]).catch(
    async (error) => {
      await Promise.allSettled([starting.then((running) => running.close()), plane.stop()])
      throw error
    },
  )
  started.resolve()
  running.resolve(proxy)
  const endTrimming = trimWhenIdle({ taken: () => plane.fold.position })
  const stop = async () => {
    endTrimming()
    const observed = plane.endObserving()
    await proxy.drain()
    return within(closeLimitMs, async () => {
      await observed
      plane.recorder.disconnected(name, 'the gateway was stopped')
      await plane.caughtUp().catch(end.fail)
      await plane.stop()
    })
  }
  const { endedSessions } = plane.fold
  const hasEnded: HasEnded = (ids, issuedAt) => endedSessions.has(ids, issuedAt, Date.now())
  return { proxy, log: log.log, logPath: log.path, hasEnded, stop }
}

/** Rejects if the log ends because its events are damaged; stays pending otherwise. */
function damageOf({ ended }: Plane): Promise<never> {
  return new Promise((_, reject) => {
    ended.then((error) => {
      if (isDamage(error)) reject(error)
    })
  })
}

type Plane = ControlPlane<{
  readonly source: FileSource
  readonly channel: InProcessChannel
  readonly ledger: BudgetLedger
}>

function openPlane(
  {
    paths,
    proxy,
    notify,
    onFault,
    onProblem,
    conditions,
    changeProtection = 'off',
    leaseDurationMs = defaultLeaseMs,
    ledgerRetentionMs: retentionMs = 0,
    stdioNetwork,
  }: StandaloneOptions,
  log: OpenedLog,
  metrics: DigestCheckCounts,
  targets: (fold: Fold) => RolloutTargets,
): Promise<Plane> {
  const { shared, digestKey } = log
  const clusterDomain = proxy.clusterDomain ?? defaultClusterDomain
  return openControlPlane({
    log,
    sourceName: '/sluice/files',
    parts: (started) => ({
      source: new FileSource({
        ...started.sourceOptions,
        paths,
        builtIn: stdioNetwork === undefined ? builtInObjects : objectsWithStdio(stdioNetwork),
        isShared: shared !== undefined,
        records:
          log.path === undefined
            ? undefined
            : new FileRecords(`${log.path}.manifests`, foldVersion),
        references: { variable: (name) => process.env[name], folderOf: dirname, isOfGateway: true },
        onProblem,
      }),
      channel: new InProcessChannel(started.recorder, shared?.replica),
      targets: targets(started.fold),
      ledger: new BudgetLedger({
        openLog: log.openLedger,
        isSole: shared === undefined,
        retentionMs,
        notify,
        warnings: warningHost(started, clusterDomain),
      }),
      ...(conditions && {
        sinks: { ...noSinks, decided: (change: FoldChange) => conditions.decided(change) },
      }),
    }),
    ...(shared && {
      lease: natsLease(shared, leaseDurationMs, notify),
      replica: shared.replica,
      keyName: digestKey.name,
    }),
    leaseDurationMs,
    leaseWaitMs: firstWaitMs,
    clusterDomain,
    judging: {
      mode: protectionModes[changeProtection],
      ...recordedRequests({
        folder: proxy.records?.folder,
        settings: { ...proxy, clusterDomain },
        catalogs: proxy.modelCatalogs,
      }),
    },
    metrics,
    notify,
    onFault,
  })
}

/** A standalone gateway writes no statuses. */
const noSinks: Sinks = {
  folded: () => undefined,
  decided: () => undefined,
  certificates: () => undefined,
  lead: () => undefined,
  follow: () => undefined,
  close: async () => undefined,
}

function natsLease(
  { servers, replica }: SharedLog,
  durationMs: number,
  notify: StandaloneOptions['notify'],
): OpenLease {
  // On NATS, a replica cannot ask the holder for the lease, so these two options are not used.
  return ({ needsIt: _, mayYield: __, ...options }) =>
    new Lease({
      ...options,
      store: new NatsLeaseStore(servers),
      durationMs,
      // This process has the lock of these manifests, so earlier processes with this name have ended.
      isGone: (holder) => holder.startsWith(`${replica}_`),
      onProblem: (text) => notify('warn', text),
    })
}

/** Reads the manifests, and begins to serve once their objects are folded. */
async function list(
  plane: Plane,
  log: OpenedLog,
  name: string,
  options: StandaloneOptions,
): Promise<void> {
  connectProxy(plane, log, name, options)
  await plane.list()
  await plane.caughtUp()
  await fetchFirstKeySets(plane)
  options.conditions?.begin(plane.fold)
  plane.open(recordWaitMs)
}

/** Records the proxy of this process as connected, and proxies of a killed earlier run as disconnected. */
function connectProxy(
  { fold, recorder }: Plane,
  { shared }: OpenedLog,
  name: string,
  { proxy, version }: StandaloneOptions,
): void {
  for (const { proxy: known } of fold.proxies()) {
    // Proxies of other replicas may be running.
    if (shared === undefined || known === name)
      recorder.disconnected(known, 'the process has ended')
  }
  const presence = { address: reachableAddress(proxy.bindAddress), version }
  // The stream id distinguishes this run from an earlier one in records that arrive late.
  recorder.connected(name, { ...presence, ...(shared && { stream: randomUUID() }) })
}

/** Fetches key sets before the proxy gets its configuration, so that it rejects no valid token at first. */
async function fetchFirstKeySets(plane: Plane): Promise<void> {
  plane.effects.update()
  await Promise.race([plane.effects.settled(), after(firstWaitMs, undefined, { ref: false })])
  await plane.caughtUp()
}

/** Counts comparisons with other replicas by result. Other metrics of the control plane are ignored. */
class DigestCheckCounts {
  readonly #counts = new Map([
    ['equal', 0],
    ['different', 0],
  ])

  add(name: string, amount = 1, result = ''): void {
    if (name !== 'digest_checks_total') return
    this.#counts.set(result, (this.#counts.get(result) ?? 0) + amount)
  }

  snapshot(): MetricsSnapshot {
    const series = [...this.#counts].map(([label, count]) => ({ labels: [label], values: [count] }))
    return { digest_checks_total: series }
  }
}

/**
 * Reports to operators and probes why the log can no longer be used, after it was read to its end. The gateway
 * keeps serving. Damage is only reported once `started` has resolved: until then, the start is repeated.
 */
function watchLog(
  { onFault, notify }: StandaloneOptions,
  plane: Plane,
  reading: Promise<void>,
  started: Promise<void> | undefined,
) {
  let reason: string | undefined
  const fail = (error: unknown): void => {
    if (reason !== undefined) return
    reason = error instanceof Error ? error.message : String(error)
    const text = logEndText(error)
    if (text === undefined) onFault(error)
    else notify('error', text)
    plane.stepDown()
  }
  const ended = reading.then(() => Promise.race([plane.outdated, plane.ended]))
  ended.then(
    async (error) => {
      if (isDamage(error)) await started
      fail(error)
    },
    () => undefined,
  )
  return {
    fail,
    metrics: (): MetricsSnapshot => ({
      log_followed: [{ labels: [], values: [reason === undefined ? 1 : 0] }],
    }),
    /** Reasons that the readiness probe reports. */
    missing: () => (reason === undefined ? [] : [`changes (${reason})`]),
  }
}

/** What to log about a failed log; undefined if the error is a bug. */
function logEndText(error: unknown): string | undefined {
  if (error instanceof UnknownEventTypeError) return tooNewText(error)
  if (!(error instanceof LogError || error instanceof DamagedEventError)) return undefined
  return `Event log failed: ${error.message}. Serving the last configuration; restart to resume updates.`
}

/**
 * `sluice run`: the control plane on one machine, with its proxy. Manifests are the source, the log
 * is a file (or shared on a NATS server, with a lease beside it), and the channel is memory.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as after } from 'node:timers/promises'
import { DamagedEventError, UnknownEventTypeError } from '../../events/index.ts'
import { reachableAddress } from '../base/own-address.ts'
import { within } from '../base/within.ts'
import { openNatsLease } from '../lease/index.ts'
import { LogError } from '../log/index.ts'
import { defaultClusterDomain } from '../model/service-host.ts'
import type { MetricsSnapshot } from '../proxy/telemetry/metric-definitions.ts'
import { type ProxyOptions, type RunningProxy, startProxy } from '../proxy/workers/supervisor.ts'
import { ManifestFiles } from '../watch/manifest-files.ts'
import type { SourceProblem } from '../watch/source-problem.ts'
import { type Channel, createChannel } from '../xds/channel.ts'
import { builtInObjects } from './api-binding.ts'
import { type ControlPlane, openControlPlane, tooNewText } from './control-plane.ts'
import { type LogOptions, type OpenedLog, openLog, type SharedLog } from './open-log.ts'
import type { ControlPlaneOptions, OpenLease } from './parts.ts'

interface StandaloneOptions extends LogOptions, Pick<ControlPlaneOptions, 'notify' | 'onFault'> {
  /** Files and folders with manifests. */
  readonly paths: readonly string[]
  /** How long the holder of the lease may be silent, if the log is shared. Default 15 s. */
  readonly leaseDurationMs?: number
  readonly proxy: Omit<ProxyOptions, 'channel' | 'name'>
  onProblem(problem: SourceProblem): void
}

export interface Standalone {
  readonly proxy: RunningProxy
  readonly logPath: string | undefined
  /**
   * Drains the proxy, stores a snapshot and closes the log. Resolves to false if the log does not
   * answer: what it lacks costs history, and connections to it may still be open.
   */
  stop(): Promise<boolean>
}

const soleProxy = 'local'
const defaultLeaseMs = 15_000
/** How long the start waits for the lease and for key sets; what comes later is used when it comes. */
const firstWaitMs = 2_000
/** How long `stop` waits for a log that does not answer; a platform that stops processes waits longer. */
const closeLimitMs = 4_000

export async function startStandalone(options: StandaloneOptions): Promise<Standalone> {
  const log = await openLog(options.paths, options)
  const digestChecks = new DigestCheckCounts()
  const plane = await openPlane(options, log, digestChecks)
  await plane.read()
  const end = new LogEnd(options, plane)
  const name = connectProxy(plane, log, options.proxy.bindAddress)
  await plane.list()
  await plane.caughtUp()
  await fetchFirstKeySets(plane)
  plane.open()
  const proxy = await startProxy({
    ...options.proxy,
    name,
    channel: plane.parts.channel,
    moreMetrics: () => ({ ...(plane.isShared && digestChecks.snapshot()), ...end.metrics() }),
    without: () => end.missing(),
  })
  const stop = async () => {
    const observed = plane.endObserving()
    await proxy.drain()
    return within(closeLimitMs, async () => {
      await observed
      plane.recorder.disconnected(name, 'the gateway was stopped')
      await plane.caughtUp().catch(end.because)
      await plane.stop()
    })
  }
  return { proxy, logPath: log.path, stop }
}

type Plane = ControlPlane<{ readonly source: ManifestFiles; readonly channel: Channel }>

function openPlane(
  { paths, proxy, notify, onFault, onProblem, leaseDurationMs = defaultLeaseMs }: StandaloneOptions,
  log: OpenedLog,
  metrics: DigestCheckCounts,
): Promise<Plane> {
  const { shared, digestKey } = log
  return openControlPlane({
    log,
    sourceName: '/sluice/files',
    parts: ({ sourceOptions, recorder }) => ({
      source: new ManifestFiles({
        ...sourceOptions,
        paths,
        builtIn: builtInObjects,
        isShared: shared !== undefined,
        onProblem,
      }),
      channel: createChannel(recorder),
    }),
    ...(shared && {
      lease: natsLease(shared, leaseDurationMs, notify),
      replica: shared.replica,
      keyName: digestKey.name,
    }),
    leaseDurationMs,
    leaseWaitMs: firstWaitMs,
    clusterDomain: proxy.clusterDomain ?? defaultClusterDomain,
    metrics,
    notify,
    onFault,
  })
}

function natsLease(
  { servers, replica }: SharedLog,
  durationMs: number,
  notify: StandaloneOptions['notify'],
): OpenLease {
  // An entry on NATS carries no requests for the lease.
  return ({ needsIt: _, mayYield: __, ...options }) =>
    openNatsLease({
      ...options,
      servers,
      durationMs,
      // Only one process at a time has the lock of these manifests on this machine.
      isGone: (holder) => holder.startsWith(`${replica}_`),
      onProblem: (text) => notify('warn', text),
    })
}

/** Records that the own proxy is there; proxies of an earlier run that was killed said no goodbye. */
function connectProxy(
  { fold, recorder }: Plane,
  { shared }: OpenedLog,
  bindAddress: string,
): string {
  const name = shared?.replica ?? soleProxy
  for (const { proxy: known } of fold.proxies()) {
    // Proxies of other replicas may live.
    if (shared === undefined || known === name)
      recorder.disconnected(known, 'the process has ended')
  }
  const presence = { address: reachableAddress(bindAddress) }
  // What other replicas record of an earlier run must not count for this one.
  recorder.connected(name, { ...presence, ...(shared && { stream: randomUUID() }) })
  return name
}

/** A proxy that starts with the keys rejects no valid token in its first moments. */
async function fetchFirstKeySets(plane: Plane): Promise<void> {
  plane.effects.update()
  await Promise.race([plane.effects.settled(), after(firstWaitMs, undefined, { ref: false })])
  await plane.caughtUp()
}

/** Comparisons with other replicas by result, the one metric of the control plane that is served here. */
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

/** A gateway whose log has ended serves on; its operator and its probes are told why. */
class LogEnd {
  readonly #options: StandaloneOptions
  readonly #plane: Plane
  #reason: string | undefined

  constructor(options: StandaloneOptions, plane: Plane) {
    this.#options = options
    this.#plane = plane
    void Promise.race([plane.outdated, plane.ended]).then(this.because)
  }

  readonly because = (error: unknown): void => {
    if (this.#reason !== undefined) return
    this.#reason = error instanceof Error ? error.message : String(error)
    const text = logEndText(error)
    if (text === undefined) this.#options.onFault(error)
    else this.#options.notify('error', text)
    this.#plane.stepDown()
  }

  metrics(): MetricsSnapshot {
    return { log_followed: [{ labels: [], values: [this.#reason === undefined ? 1 : 0] }] }
  }

  /** What readiness names as missing. */
  missing(): readonly string[] {
    return this.#reason === undefined ? [] : [`changes (${this.#reason})`]
  }
}

/** Undefined if the error is a bug. */
function logEndText(error: unknown): string | undefined {
  if (error instanceof UnknownEventTypeError) return tooNewText(error)
  if (!(error instanceof LogError || error instanceof DamagedEventError)) return undefined
  return `Event log failed: ${error.message}. Serving the last configuration; restart to resume updates.`
}

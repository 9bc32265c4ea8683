/**
 * The wiring of a standalone gateway. Every stage in order; each line says what it reads and what it
 * writes.
 *
 *   log         reads a file or NATS    writes the events that everything below lives on
 *   fold        reads the log           writes desired state and statuses, in memory
 *   reconciler  reads log and fold      writes published changes; decisions and snapshots into the log
 *   secrets     reads published changes writes the values beside them that they refer to
 *   key sets    reads the fold          writes what it has fetched for policies into the log
 *   timers      reads the fold          writes into the log that a time has come which it asked for
 *   channel     reads published changes writes them, encoded, to the proxy
 *   proxy       reads the channel       writes answers (acknowledged, rejected); serves traffic
 *   recorder    reads answers           writes them into the log
 *   writing     reads manifests         writes observations into the log, secret values to `secrets`
 *
 * A controller in a cluster is the same pipeline with other parts: Kubernetes as the source, NATS as
 * the log, gRPC as the channel; `kubernetes.ts` wires those.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as after } from 'node:timers/promises'
import { leaseAcquired, type SluiceEvent } from '../../events/index.ts'
import type { Fold } from '../actors/fold.ts'
import { systemClock } from '../base/clock.ts'
import { reachableAddress } from '../base/own-address.ts'
import { within } from '../base/within.ts'
import type { SecretStore } from '../effects/secret-store.ts'
import type { Recorded } from '../log/index.ts'
import type { DesiredDelta } from '../model/resources.ts'
import { defaultClusterDomain } from '../model/service-host.ts'
import type { MetricsSnapshot } from '../proxy/telemetry/metric-definitions.ts'
import { type ProxyOptions, type RunningProxy, startProxy } from '../proxy/workers/supervisor.ts'
import type { DigestKey } from '../watch/digest-key.ts'
import type { ManifestFilesOptions } from '../watch/manifest-files.ts'
import type { SourceProblem } from '../watch/source-problem.ts'
import { createChannel } from '../xds/channel.ts'
import { DeliveryRecorder } from '../xds/delivery-recorder.ts'
import { apiBinding, builtInObjects } from './api-binding.ts'
import { DigestCheck } from './digest-check.ts'
import { Effects } from './effects.ts'
import { Halt } from './log-end.ts'
import { contradictLoss } from './lost-proxies.ts'
import { type LogOptions, type OpenedLog, openLog } from './open-log.ts'
import { Reconciler } from './reconciler.ts'
import { type BeginOptions, beginState, whileHolding } from './restore.ts'
import { openSecretStore, secretDigests } from './secret-digests.ts'
import { captureState, type RestoredState } from './stored-state.ts'
import { openSharedLease, openWriting, type Writing } from './writing.ts'

export interface PipelineOptions extends LogOptions {
  /** Files and folders with manifests. */
  readonly paths: readonly string[]
  /** Of the lease, where the log is shared: how long its holder may be silent. Default 15 s. */
  readonly leaseDurationMs?: number
  readonly proxy: Omit<ProxyOptions, 'channel' | 'name'>
  onProblem(problem: SourceProblem): void
  onNotice(text: string): void
  /** No change is taken up any more, and why; what is served goes on to be served. */
  onHalt(text: string): void
  /** A bug, or storage that failed: the pipeline may be behind from here on. */
  onFault(error: unknown): void
}

export interface Pipeline {
  readonly proxy: RunningProxy
  readonly logPath: string | undefined
  /**
   * Drains the proxy, stores a snapshot and closes the log. False where the log does not answer: what
   * it lacks costs history, and connections to it may still be open.
   */
  stop(): Promise<boolean>
}

/** Name of the cluster in subjects; a standalone gateway is its own. */
const cluster = 'local'
const fileSource = '/sluice/files'
const soleProxy = 'local'
const defaultLeaseMs = 15_000
/** How long the start waits for key sets; what comes later is taken in when it comes. */
const firstKeysMs = 2_000
/** How long the end waits for a log that has ended or does not answer; a platform that stops processes waits longer. */
const closeLimitMs = 4_000

export async function startPipeline(options: PipelineOptions): Promise<Pipeline> {
  const opened = await openLog(options.paths, options)
  for (const notice of opened.notices) options.onNotice(notice)
  const restored = await beginState(beginning(opened, options))
  const { fold, index } = restored
  const identity = `${opened.shared?.replica ?? soleProxy}_${randomUUID().slice(0, 8)}`
  const post = (events: readonly SluiceEvent[]) => writing.post(events)
  const halt = new Halt(options, () => writing.yield())
  const recorder = createRecorder(opened, identity, post)
  const channel = createChannel(recorder)
  const secrets = openSecretStore(opened.digestKey, (late) => channel.publish(late))
  const digests = openDigests(opened, fold, identity, post, options.onNotice)
  const reconciler = createReconciler(opened, restored, options, {
    onEnd: halt.because,
    publish: (delta) => {
      channel.publish(secrets.join(delta))
      return () => secrets.retain(writing.secretDigests().union(secretDigests(fold)))
    },
    writing: () => writing,
    onDecided: () => effects.update(),
    onFolded: noteFolded(digests, recorder),
  })
  const writing = openWriting({
    opened,
    fold,
    index,
    reconciler: () => reconciler,
    files: filesOf(options, secrets),
    leaseDurationMs: options.leaseDurationMs ?? defaultLeaseMs,
    identity,
    onNotice: options.onNotice,
    onFault: options.onFault,
    onEnd: halt.because,
  })
  const effects = new Effects({
    ...{ fold, secrets },
    clusterDomain: options.proxy.clusterDomain ?? defaultClusterDomain,
    keeper: { append: (_stage, events) => writing.append(events) },
    epoch: () => writing.epoch(),
    onNotice: options.onNotice,
  })
  const caughtUp = async () => reconciler.folded(await opened.log.lastPosition())
  await reconciler.start(restored.from)
  digests.begin()
  const name = connectProxy(opened, fold, recorder, options.proxy.bindAddress)
  await writing.start()
  await caughtUp()
  await haveFirstKeys(effects)
  await caughtUp()
  reconciler.open()
  const proxy = await startProxy({
    ...options.proxy,
    name,
    channel,
    ...halt.told(digests.metrics),
  })
  const stop = async () => {
    const reading = writing.endReading().then(() => effects.close())
    await proxy.drain()
    return within(closeLimitMs, async () => {
      await reading.then(() => recorder.disconnected(name, 'the gateway was stopped'))
      recorder.close()
      await caughtUp().catch(halt.because)
      await reconciler.stop()
      await closeLog(opened, restored, writing)
    })
  }
  return { proxy, logPath: opened.path, stop }
}

/** A proxy that starts with the keys refuses nobody in its first moments. */
async function haveFirstKeys(effects: Effects): Promise<void> {
  effects.update()
  await Promise.race([effects.settled(), after(firstKeysMs, undefined, { ref: false })])
}

async function closeLog(
  opened: OpenedLog,
  { fold, index }: RestoredState,
  writing: Writing,
): Promise<void> {
  if (writing.epoch() !== undefined) await opened.log.saveSnapshot(captureState(fold, index))
  await writing.close()
  await opened.close()
}

/** How the state is found again where somebody has removed events from the log. */
function beginning({ log, shared }: OpenedLog, options: PipelineOptions): BeginOptions {
  const { onNotice, leaseDurationMs = defaultLeaseMs } = options
  return {
    log,
    source: fileSource,
    patienceMs: shared === undefined ? 0 : 2 * leaseDurationMs,
    alone: async (work) => {
      if (shared !== undefined) {
        const open = openSharedLease(shared, { durationMs: leaseDurationMs, onProblem: onNotice })
        return whileHolding(open, leaseDurationMs, work)
      }
      await work()
      return true
    },
    onWait: () => undefined,
    say: onNotice,
  }
}

function createRecorder(
  { shared }: OpenedLog,
  identity: string,
  append: (events: readonly SluiceEvent[]) => void,
): DeliveryRecorder {
  return new DeliveryRecorder({
    clock: systemClock,
    cluster,
    run: randomUUID(),
    ...(shared !== undefined && { replica: identity }),
    append,
  })
}

/** Tells that the own proxy is there; proxies of an earlier run that was killed did not say goodbye. */
function connectProxy(
  { shared }: OpenedLog,
  fold: Fold,
  recorder: DeliveryRecorder,
  bindAddress: string,
): string {
  const name = shared?.replica ?? soleProxy
  for (const { proxy: known } of fold.proxies()) {
    // Those of other replicas may live.
    if (shared === undefined || known === name) {
      recorder.disconnected(known, 'the process has ended')
    }
  }
  const presence = { address: reachableAddress(bindAddress) }
  // Where there are others, what is said of an earlier run must not count for this one.
  recorder.connected(name, { ...presence, ...(shared !== undefined && { stream: randomUUID() }) })
  return name
}

/** Whoever shares a log compares what it makes of it with what the others make of it. */
function openDigests(
  { shared }: OpenedLog,
  fold: Fold,
  replica: string,
  post: (events: readonly SluiceEvent[]) => void,
  onNotice: (text: string) => void,
) {
  const nothing = () => undefined
  if (shared === undefined) {
    return { folded: nothing, begin: nothing, metrics: (): MetricsSnapshot => ({}) }
  }
  const counts = new Map([
    ['equal', 0],
    ['different', 0],
  ])
  const check = new DigestCheck({
    fold,
    replica,
    metrics: {
      add: (_name, amount = 1, result = '') =>
        counts.set(result, (counts.get(result) ?? 0) + amount),
    },
    post,
    say: (_severity, text) => onNotice(text),
  })
  const series = () => [...counts].map(([result, count]) => ({ labels: [result], values: [count] }))
  return {
    folded: (recorded: Recorded) => check.folded(recorded),
    begin: () => check.begin(),
    metrics: (): MetricsSnapshot => ({ digest_checks_total: series() }),
  }
}

function noteFolded(digests: ReturnType<typeof openDigests>, recorder: DeliveryRecorder) {
  return (recorded: Recorded) => {
    digests.folded(recorded)
    contradictLoss(recorded.event, recorder)
  }
}

interface Outlets {
  readonly onFolded: (recorded: Recorded) => void
  /** Hands a change to the proxy; returns what forgets secrets that nothing names any more. */
  readonly publish: (delta: DesiredDelta) => () => void
  readonly writing: () => Writing
  readonly onDecided: () => void
  readonly onEnd: (error: unknown) => void
}

function createReconciler(
  { log, digestKey }: OpenedLog,
  { fold, index }: RestoredState,
  { onFault, onNotice }: PipelineOptions,
  { publish, writing, onDecided, onFolded, onEnd }: Outlets,
): Reconciler {
  let isSecretGone = false
  return new Reconciler({
    log,
    fold,
    cluster,
    clock: systemClock,
    append: (events) => writing().append(events),
    epoch: () => writing().epoch(),
    observe: (event) => {
      index.apply(event)
      tellOtherKey(event, digestKey, onNotice)
      isSecretGone ||= mayForgetSecrets(event)
    },
    capture: () => captureState(fold, index),
    publish: (delta) => {
      const forget = publish(delta)
      if (isSecretGone) forget()
      isSecretGone = false
    },
    onDecided,
    onFolded,
    onFault,
    onEnd,
  })
}

function filesOf(
  options: PipelineOptions,
  secrets: SecretStore,
): Omit<ManifestFilesOptions, 'append' | 'digestKey'> {
  return {
    ...apiBinding,
    paths: options.paths,
    clock: systemClock,
    cluster,
    keepSecret: (digest, value) => secrets.keep(digest, value),
    builtIn: builtInObjects,
    onProblem: options.onProblem,
  }
}

/** Digests under another key say nothing here: what they name cannot be served. */
function tellOtherKey(event: SluiceEvent, own: DigestKey, onNotice: (text: string) => void): void {
  if (event.type !== leaseAcquired.type) return
  const { holder, keyName = own.name } = event.data
  if (keyName === own.name) return
  const text = `${holder}, which writes the log, has another key of secret digests: what it says of Secrets is not served here`
  onNotice(`${text}; give all replicas the same file (SLUICE_DIGEST_KEY_FILE)`)
}

/** Has an object come or gone that may have held secrets? */
function mayForgetSecrets({ type, data }: SluiceEvent): boolean {
  return type.startsWith('dev.sluice.resource.') && 'kind' in data && data.kind === 'Secret'
}

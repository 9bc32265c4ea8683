/**
 * The wiring of a standalone gateway. Every stage in order; each line says what it reads and what it
 * writes.
 *
 *   log         reads a file or NATS    writes the events that everything below lives on
 *   fold        reads the log           writes desired state and statuses, in memory
 *   reconciler  reads log and fold      writes published changes; decisions and snapshots into the log
 *   secrets     reads published changes writes the values beside them that they refer to
 *   key sets    reads the fold          writes what it has fetched for policies into the log
 *   channel     reads published changes writes them, encoded, to the proxy
 *   proxy       reads the channel       writes answers (acknowledged, rejected); serves traffic
 *   recorder    reads answers           writes them into the log
 *   source      reads manifests         writes observations into the log, secret values to `secrets`
 *
 * A controller in a cluster is the same pipeline with other parts: Kubernetes as the source, NATS as
 * the log, gRPC as the channel; `pipeline/controller/session.ts` wires those.
 */

import { randomUUID } from 'node:crypto'
import { setTimeout as after } from 'node:timers/promises'
import type { SluiceEvent } from '../events/index.ts'
import { systemClock } from './base/clock.ts'
import { reachableAddress } from './base/own-address.ts'
import { KeySetFetcher } from './effects/key-set-fetcher.ts'
import { SecretStore } from './effects/secret-store.ts'
import type { EventLog } from './log/index.ts'
import { apiBinding, builtInObjects } from './pipeline/api-binding.ts'
import { type LogOptions, type OpenedLog, openLog } from './pipeline/open-log.ts'
import { Reconciler } from './pipeline/reconciler.ts'
import { keepSessionKey, secretDigests } from './pipeline/secret-digests.ts'
import { captureState, restoreState } from './pipeline/stored-state.ts'
import { type ProxyOptions, type RunningProxy, startProxy } from './proxy/supervisor.ts'
import { FileSource } from './watch/index.ts'
import { ResourceIndex } from './watch/resource-index.ts'
import type { SourceProblem } from './watch/source-problem.ts'
import { createChannel } from './xds/channel.ts'
import { DeliveryRecorder } from './xds/delivery-recorder.ts'

export interface PipelineOptions extends LogOptions {
  /** Files and folders with manifests. */
  readonly paths: readonly string[]
  readonly proxy: Omit<ProxyOptions, 'channel' | 'name'>
  onProblem(problem: SourceProblem): void
  onNotice(text: string): void
  /** A bug, or storage that failed: the pipeline may be behind from here on. */
  onFault(error: unknown): void
}

export interface Pipeline {
  readonly proxy: RunningProxy
  readonly logPath: string | undefined
  /** Drains the proxy, stores a snapshot and closes the log. */
  stop(): Promise<void>
}

/** Name of the cluster in subjects; a standalone gateway is its own. */
const cluster = 'local'
const fileSource = '/sluice/files'
const proxyName = 'local'
/** How long the start waits for key sets; what comes later is taken in when it comes. */
const firstKeysMs = 2_000

export async function startPipeline(options: PipelineOptions): Promise<Pipeline> {
  const opened = await openLog(options.paths, options)
  for (const notice of opened.notices) options.onNotice(notice)
  const { log } = opened
  const { fold, index, from } = await restoreState(log, fileSource)
  const record = (events: readonly SluiceEvent[]) => {
    log.append(events).catch(options.onFault)
  }
  const run = randomUUID()
  const recorder = new DeliveryRecorder({ clock: systemClock, cluster, run, append: record })
  const channel = createChannel(recorder)
  const secrets = new SecretStore(() => {
    const late = secrets.late()
    if (late !== undefined) channel.publish(late)
  })
  keepSessionKey(secrets, opened.digestKey)
  let isSecretGone = false
  const reconciler = new Reconciler({
    log,
    fold,
    cluster,
    clock: systemClock,
    observe: (event) => {
      index.apply(event)
      isSecretGone ||= mayForgetSecrets(event)
    },
    capture: () => captureState(fold, index),
    publish: (delta) => {
      channel.publish(secrets.join(delta))
      if (isSecretGone) secrets.retain(source.secretDigests().union(secretDigests(fold)))
      isSecretGone = false
      keySets.update(fold.graph.keySets.all())
    },
    onFault: options.onFault,
  })
  const keySets = new KeySetFetcher({
    clock: systemClock,
    cluster,
    run,
    resources: () => fold.resources().map(({ resource }) => resource),
    secret: (digest) => secrets.value(digest),
    known: (uri) => fold.keySetDigest(uri),
    append: (event) => appendAll(log, [event]),
    onNotice: options.onNotice,
  })
  await reconciler.start(from)
  // Proxies of an earlier run that was killed did not say goodbye.
  for (const gone of fold.proxies()) recorder.disconnected(gone, 'the process has ended')
  recorder.connected(proxyName, { address: reachableAddress(options.proxy.bindAddress) })
  const source = createSource(options, opened, index, secrets)
  await source.start()
  await reconciler.folded(await log.lastPosition())
  // A proxy that starts with the keys refuses nobody in its first moments.
  keySets.update(fold.graph.keySets.all())
  await Promise.race([keySets.settled(), after(firstKeysMs, undefined, { ref: false })])
  await reconciler.folded(await log.lastPosition())
  reconciler.open()
  const proxy = await startProxy({ ...options.proxy, name: proxyName, channel })
  const stop = async () => {
    await source.close()
    await keySets.close()
    await proxy.drain()
    recorder.disconnected(proxyName, 'the gateway was stopped')
    recorder.close()
    await reconciler.folded(await log.lastPosition())
    await reconciler.stop()
    await log.saveSnapshot(captureState(fold, index))
    await opened.close()
  }
  return { proxy, logPath: opened.path, stop }
}

function createSource(
  options: PipelineOptions,
  { log, digestKey }: OpenedLog,
  index: ResourceIndex,
  secrets: SecretStore,
): FileSource {
  return new FileSource({
    ...apiBinding,
    paths: options.paths,
    clock: systemClock,
    cluster,
    // A copy: the source is ahead of the fold by what it has appended and the fold has not read.
    index: new ResourceIndex(fileSource, index.toState()),
    digestKey,
    keepSecret: (digest, value) => secrets.keep(digest, value),
    builtIn: builtInObjects,
    onChange: (events) => appendAll(log, events),
    onProblem: options.onProblem,
  })
}

async function appendAll(log: EventLog, events: readonly SluiceEvent[]): Promise<void> {
  const appended = await log.append(events)
  if (!appended.ok) throw new Error(appended.problems.map(({ message }) => message).join('; '))
}

/** Has an object come or gone that may have held secrets? */
function mayForgetSecrets({ type, data }: SluiceEvent): boolean {
  return type.startsWith('dev.sluice.resource.') && 'kind' in data && data.kind === 'Secret'
}

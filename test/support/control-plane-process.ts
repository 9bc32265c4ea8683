/**
 * A control plane on manifests that serves proxies elsewhere: the pipeline of `sluice run` with the
 * xDS server in place of the channel. A process of its own, so that a test can kill it. Takes its
 * options as JSON in the first argument and tells what it has bound on standard output.
 */
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { SluiceEvent } from '../../events/index.ts'
import { systemClock } from '../../src/base/clock.ts'
import { apiBinding, builtInObjects } from '../../src/control-plane/api-binding.ts'
import { Reconciler } from '../../src/control-plane/reconciler.ts'
import { openSecretStore } from '../../src/control-plane/secrets.ts'
import { captureState, restoreState } from '../../src/control-plane/stored-state.ts'
import { Timers } from '../../src/effects/timers.ts'
import { openEmbeddedLog } from '../../src/log/index.ts'
import { openDigestKey } from '../../src/watch/digest-key.ts'
import { FileSource } from '../../src/watch/index.ts'
import { ResourceIndex } from '../../src/watch/resource-index.ts'
import { tlsFiles } from '../../src/xds/credentials.ts'
import { DeliveryRecorder } from '../../src/xds/delivery-recorder.ts'
import { startXdsServer } from '../../src/xds/server.ts'
import { verifyTokenFile } from '../../src/xds/verifier.ts'

export interface ControlPlaneProcessOptions {
  readonly manifests: string
  readonly logFile: string
  /** Key of secret digests; replicas share it. */
  readonly digestKey: string
  readonly xdsAddress: string
  readonly tokenFile?: string
  readonly certificateFile?: string
  readonly keyFile?: string
  readonly returnLimitMs?: number
  readonly answerLimitMs?: number
  /** Milliseconds by which the clock of timers is ahead, so that nothing has to be waited for. */
  readonly aheadMs?: number
}

const source = '/sluice/files'
const cluster = 'local'

function tell(text: string): void {
  process.stdout.write(`${text}\n`)
}

async function main(options: ControlPlaneProcessOptions): Promise<void> {
  const { log } = openEmbeddedLog(options.logFile)
  const { fold, index, from } = await restoreState(log, source)
  const onFault = (error: unknown) => tell(`fault: ${error}`)
  const append = (events: readonly SluiceEvent[]) => void log.append(events).catch(onFault)
  const recorder = new DeliveryRecorder({ clock: systemClock, cluster, run: randomUUID(), append })
  const { certificateFile, keyFile, tokenFile, returnLimitMs, answerLimitMs } = options
  const xds = await startXdsServer({
    address: options.xdsAddress,
    answers: recorder,
    ...(tokenFile && { verify: verifyTokenFile(tokenFile) }),
    ...(certificateFile && keyFile && { tls: tlsFiles(certificateFile, keyFile, { everyMs: 50 }) }),
    ...(returnLimitMs !== undefined && { returnLimitMs }),
    ...(answerLimitMs !== undefined && { answerLimitMs }),
    onNotice: (text) => tell(`notice: ${text}`),
  })
  const digestKey = openDigestKey(options.digestKey)
  const secrets = openSecretStore(digestKey, (late) => xds.publish(late))
  const { aheadMs = 0 } = options
  const timers = new Timers({
    clock: { now: () => Date.now() + aheadMs },
    cluster,
    epoch: () => 0,
    append,
    graceMs: 0,
  })
  const reconciler = new Reconciler({
    log,
    fold,
    cluster,
    clock: systemClock,
    epoch: () => 0,
    append: (events) => log.append(events),
    observe: (event) => {
      index.apply(event)
      setImmediate(() => timers.want(fold.timers()))
    },
    capture: () => captureState(fold, index),
    publish: (delta) => xds.publish(secrets.join(delta)),
    onFault,
  })
  await reconciler.start(from)
  const files = new FileSource({
    ...apiBinding,
    paths: [options.manifests],
    clock: systemClock,
    cluster,
    index: new ResourceIndex(source, index.toState()),
    digestKey,
    keepSecret: (digest, value) => secrets.keep(digest, value),
    builtIn: builtInObjects,
    onChange: async (events) => void (await log.append(events)),
    onProblem: ({ message }) => tell(`problem: ${message}`),
  })
  await files.start()
  await reconciler.folded(await log.lastPosition())
  xds.expect(fold.proxies().map(({ proxy }) => proxy))
  reconciler.open()
  const metrics = createServer((_, response) => response.end(xds.metrics()))
  await new Promise<void>((resolve) => metrics.listen(0, '127.0.0.1', resolve))
  tell(`metrics: ${(metrics.address() as AddressInfo).port}`)
  tell(`xds: ${xds.address}`)
  process.once('SIGTERM', async () => {
    await files.close()
    timers.close()
    await xds.close()
    recorder.close()
    await reconciler.stop()
    await log.close()
    process.exit(0)
  })
}

await main(JSON.parse(process.argv[2] ?? '{}') as ControlPlaneProcessOptions)

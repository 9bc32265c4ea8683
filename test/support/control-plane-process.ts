/**
 * The control plane of `sluice run` with the xDS server instead of the channel, so that it serves
 * proxies in other processes. It runs in its own process, so that a test can kill it. The first
 * argument has its options as JSON; it prints its bound addresses to standard output.
 */
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { builtInObjects } from '../../src/control/plane/api-binding.ts'
import { openControlPlane } from '../../src/control/plane/control-plane.ts'
import { EndedRecorder } from '../../src/control/plane/ended-recorder.ts'
import { openLog } from '../../src/control/plane/open-log.ts'
import { openDigestKey } from '../../src/control/watch/digest-key.ts'
import { FileSource } from '../../src/control/watch/files.ts'
import { tlsFiles } from '../../src/control/xds/credentials.ts'
import { XdsServer, type XdsServerOptions } from '../../src/control/xds/server.ts'
import { defaultClusterDomain } from '../../src/ground/model/service-host.ts'

export interface ControlPlaneProcessOptions
  extends Pick<XdsServerOptions, 'returnLimitMs' | 'ackTimeoutMs'> {
  readonly manifests: string
  readonly logFile: string
  /** Key of secret digests; replicas share it. */
  readonly digestKey: string
  readonly xdsAddress: string
  readonly tokenFile?: string
  readonly certificateFile?: string
  readonly keyFile?: string
  /** Milliseconds by which the clock of timers is ahead, so that a test need not wait for them. */
  readonly aheadMs?: number
}

function print(text: string): void {
  process.stdout.write(`${text}\n`)
}

/** One token for every proxy, in a file that is read again for each stream. */
const verifyToken =
  (path: string): XdsServerOptions['verify'] =>
  async ({ token }) =>
    token === readFileSync(path, 'utf8').trim() ? {} : undefined

async function main(options: ControlPlaneProcessOptions): Promise<void> {
  const { certificateFile, keyFile, tokenFile, aheadMs = 0 } = options
  const digestKey = openDigestKey(options.digestKey)
  const plane = await openControlPlane({
    log: await openLog([], { logFile: options.logFile, digestKey }),
    sourceName: '/sluice/files',
    parts: ({ sourceOptions, recorder, writer }) => ({
      source: new FileSource({
        ...sourceOptions,
        paths: [options.manifests],
        builtIn: builtInObjects,
        onProblem: ({ message }) => print(`problem: ${message}`),
      }),
      channel: new XdsServer({
        ...options,
        address: options.xdsAddress,
        reports: recorder,
        onEnded: (proxy, report) => new EndedRecorder({ writer }).report(proxy, report),
        ...(tokenFile && { verify: verifyToken(tokenFile) }),
        ...(certificateFile &&
          keyFile && { tls: tlsFiles(certificateFile, keyFile, { everyMs: 50 }) }),
        onNotice: (text) => print(`notice: ${text}`),
      }),
    }),
    timing: { clock: { now: () => Date.now() + aheadMs }, graceMs: 0 },
    leaseDurationMs: 0,
    clusterDomain: defaultClusterDomain,
    metrics: { add: () => undefined },
    notify: (severity, text) => {
      if (severity !== 'debug') print(`${severity}: ${text}`)
    },
    onFault: (error) => print(`fault: ${error}`),
  })
  const xds = await plane.parts.channel.start()
  await plane.read()
  await plane.list()
  xds.expect(plane.fold.proxies().map(({ proxy }) => proxy))
  plane.open()
  const metrics = createServer((_, response) => response.end(xds.metrics()))
  await new Promise<void>((resolve) => metrics.listen(0, '127.0.0.1', resolve))
  print(`metrics: ${(metrics.address() as AddressInfo).port}`)
  print(`xds: ${xds.address}`)
  process.once('SIGTERM', async () => {
    await plane.stop()
    process.exit(0)
  })
}

await main(JSON.parse(process.argv[2] ?? '{}') as ControlPlaneProcessOptions)

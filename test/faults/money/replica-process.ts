/**
 * A replica of the control plane on manifests, with its log and its ledger on NATS, which serves proxies in other
 * processes. The first argument has its options as JSON; notices and the address for proxies go to standard output.
 */

import { Lease } from '../../../src/control/lease/lease.ts'
import { NatsLeaseStore } from '../../../src/control/lease/nats.ts'
import { builtInObjects } from '../../../src/control/plane/api-binding.ts'
import { BudgetLedger } from '../../../src/control/plane/budget-ledger.ts'
import { openControlPlane } from '../../../src/control/plane/control-plane.ts'
import { openLog } from '../../../src/control/plane/open-log.ts'
import { FileSource } from '../../../src/control/watch/files.ts'
import { XdsServer } from '../../../src/control/xds/server.ts'
import { defaultClusterDomain } from '../../../src/ground/model/service-host.ts'

export interface ReplicaOptions {
  readonly manifests: string
  readonly nats: string
  /** Key of secret digests, which replicas share. */
  readonly digestKey: string
  readonly xdsAddress: string
}

const leaseDurationMs = 4_000

const print = (text: string): void => void process.stdout.write(`${text}\n`)
const notify = (severity: string, text: string): void => {
  if (severity !== 'debug') print(`${severity}: ${text}`)
}

async function main({ manifests, nats, digestKey, xdsAddress }: ReplicaOptions): Promise<void> {
  const log = await openLog([manifests], { nats, digestKeyFile: digestKey })
  const { shared } = log
  if (shared === undefined) throw new Error('the log is not shared')
  const ledger = new BudgetLedger({
    warnings: {
      isWriting: () => false,
      resources: () => [],
      secret: () => undefined,
      clusterDomain: 'cluster.local',
    },
    openLog: log.openLedger,
    isSole: false,
    retentionMs: 0,
    notify,
  })
  const plane = await openControlPlane({
    log,
    sourceName: '/sluice/files',
    parts: ({ sourceOptions, recorder }) => ({
      source: new FileSource({
        ...sourceOptions,
        paths: [manifests],
        builtIn: builtInObjects,
        isShared: true,
        onProblem: ({ message }) => print(`problem: ${message}`),
      }),
      channel: new XdsServer({
        address: xdsAddress,
        reports: recorder,
        ledger: ledger.connect,
        onNotice: (text) => print(`notice: ${text}`),
      }),
      ledger,
    }),
    lease: ({ needsIt: _, mayYield: __, ...options }) =>
      new Lease({
        ...options,
        store: new NatsLeaseStore(shared.servers),
        durationMs: leaseDurationMs,
        isGone: (holder) => holder.startsWith(`${shared.replica}_`),
        onProblem: (text) => print(`lease: ${text}`),
      }),
    replica: shared.replica,
    keyName: log.digestKey.name,
    timing: { graceMs: 0 },
    leaseDurationMs,
    clusterDomain: defaultClusterDomain,
    metrics: { add: () => undefined },
    notify,
    onFault: (error) => print(`fault: ${error}`),
  })
  const xds = await plane.parts.channel.start()
  await plane.read()
  await plane.list()
  xds.expect(plane.fold.proxies().map(({ proxy }) => proxy))
  plane.open()
  print(`xds: ${xds.address}`)
  process.once('SIGTERM', async () => {
    await plane.stop()
    process.exit(0)
  })
}

await main(JSON.parse(process.argv[2] ?? '{}') as ReplicaOptions)

/** The log of a controller: shared on a NATS server, or in a file of its own. */
import { randomBytes } from 'node:crypto'
import type { ControllerSettings } from '../../../ground/settings/controller.ts'
import {
  type KubeClient,
  KubeError,
  type OwnerReference,
  readSharedSecret,
} from '../../kube/index.ts'
import { natsHeartbeats } from '../../lease/heartbeat.ts'
import { openNatsLog, withoutPasswords } from '../../log/nats.ts'
import { DigestKey, readKeyFile } from '../../watch/digest-key.ts'
import { defaultLogPath, type OpenedLog, openLog } from '../open-log.ts'

interface ControllerLogOptions {
  readonly client: KubeClient
  /** Namespace of the Secret with the key of secret digests. */
  readonly namespace: string
  readonly owner?: OwnerReference | undefined
  readonly settings: Pick<ControllerSettings, 'nats' | 'logFile' | 'leaseDurationMs'>
  readonly replica: string
  /** Identifies the cluster, and distinguishes the default log paths of several clusters. */
  readonly cluster: string
}

/** Name of the Secret with the key of secret digests, which all replicas share. */
const digestSecretName = 'sluice-digest-key'

/** @throws LogError, LogInUseError, KubeError or the system's error. */
export async function openControllerLog(options: ControllerLogOptions): Promise<OpenedLog> {
  const { client, namespace, owner, settings, replica, cluster } = options
  const { nats, logFile, leaseDurationMs } = settings
  const place = { namespace, name: digestSecretName, key: 'key', owner }
  if (nats === undefined) {
    const name = [`controller of ${cluster}`]
    const file = `${logFile ?? defaultLogPath(name)}.key`
    const { digestKey, notices } = await keyBesideFile(client, place, file)
    const opened = await openLog(name, { logFile, digestKey })
    return { ...opened, notices: [...notices, ...opened.notices] }
  }
  const key = await readSharedSecret(client, place, () => randomBytes(32))
  const waiting = { servers: nats, patienceMs: Math.max(5_000, leaseDurationMs) }
  const log = await openNatsLog(waiting)
  return {
    log,
    digestKey: new DigestKey(key),
    path: withoutPasswords(nats),
    notices: [],
    shared: { servers: nats, openHeartbeats: natsHeartbeats(nats), replica },
    openLedger: () => openNatsLog({ ...waiting, log: 'ledger' }),
    close: () => log.close(),
  }
}

/**
 * Returns the key in the shared Secret. The Secret outlives the pod, so sessions sealed with the key continue
 * after restarts and upgrades. If the Secret has no key yet, the key in the file is copied into it. Returns
 * only a notice if access to the Secret is denied.
 */
async function keyBesideFile(
  client: KubeClient,
  place: Parameters<typeof readSharedSecret>[1],
  file: string,
): Promise<{ readonly digestKey?: DigestKey; readonly notices: readonly string[] }> {
  try {
    const make = () => readKeyFile(file) ?? randomBytes(32)
    return { digestKey: new DigestKey(await readSharedSecret(client, place, make)), notices: [] }
  } catch (error) {
    if (!(error instanceof KubeError) || error.status !== 403) throw error
    const text = `Secret ${place.namespace}/${place.name} cannot be used: ${error.message}`
    return { notices: [`${text}; sessions end with the file ${file}`] }
  }
}

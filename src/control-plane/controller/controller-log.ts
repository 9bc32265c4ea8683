/** The log of a controller: shared on a NATS server, or its own in a file. */
import { randomBytes } from 'node:crypto'
import {
  type KubeClient,
  KubeError,
  type OwnerReference,
  readSharedSecret,
} from '../../kube/index.ts'
import { openNatsLog, placeOf } from '../../log/nats.ts'
import { DigestKey, readKeyFile } from '../../watch/digest-key.ts'
import { defaultLogPath, type OpenedLog, openLog } from '../open-log.ts'

interface ControllerLogOptions {
  readonly client: KubeClient
  /** Where the key of secret digests is kept. */
  readonly namespace: string
  readonly owner?: OwnerReference | undefined
  readonly nats?: string
  readonly replica: string
  readonly logFile?: string
  /** Tells clusters apart where the log is in the default place. */
  readonly cluster: string
  /** How long a call may wait for the NATS server, in milliseconds. */
  readonly patienceMs: number
}

/** Name of the Secret with the key of secret digests, which all replicas share. */
const digestSecretName = 'sluice-digest-key'

/** @throws LogError, LogInUseError, KubeError or the system's error. */
export async function openControllerLog(options: ControllerLogOptions): Promise<OpenedLog> {
  const { client, namespace, owner, nats, replica, logFile, cluster, patienceMs } = options
  const place = { namespace, name: digestSecretName, key: 'key', owner }
  if (nats === undefined) {
    const name = [`controller of ${cluster}`]
    const file = `${logFile ?? defaultLogPath(name)}.key`
    const { digestKey, notices } = await keyBesideFile(client, place, file)
    const opened = await openLog(name, {
      ...(logFile && { logFile }),
      ...(digestKey && { digestKey }),
    })
    return { ...opened, notices: [...notices, ...opened.notices] }
  }
  const key = await readSharedSecret(client, place, () => randomBytes(32))
  const log = await openNatsLog({ servers: nats.split(','), patienceMs })
  return {
    log,
    digestKey: new DigestKey(key),
    path: nats.split(',').map(placeOf).join(','),
    notices: [],
    shared: { servers: nats, replica },
    close: () => log.close(),
  }
}

/**
 * A log in a pod goes with the pod, and the key must not: sessions that are sealed with it are carried
 * on over restarts and upgrades, and replicas that overlap understand each other. A key that is in a
 * file already becomes the shared one.
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

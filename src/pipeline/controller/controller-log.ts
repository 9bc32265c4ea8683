/** The log of a controller: shared on a NATS server, or its own in a file. */
import { randomBytes } from 'node:crypto'

import { type KubeClient, type OwnerReference, readSharedSecret } from '../../kube/index.ts'
import { openNatsLog, placeOf } from '../../log/nats.ts'
import { DigestKey } from '../../watch/digest-key.ts'
import { type OpenedLog, openLog } from '../open-log.ts'

export interface ControllerLogOptions {
  readonly client: KubeClient
  /** Where the key of secret digests is kept. */
  readonly namespace: string
  readonly owner?: OwnerReference | undefined
  readonly nats?: string
  readonly logFile?: string
  /** Tells clusters apart where the log is in the default place. */
  readonly cluster: string
  /** How long a call may wait for the NATS server, in milliseconds. */
  readonly patienceMs: number
}

/** Name of the Secret with the key of secret digests, which all replicas share. */
export const digestSecretName = 'sluice-digest-key'

/** @throws LogError, LogInUseError, KubeError or the system's error. */
export async function openControllerLog(options: ControllerLogOptions): Promise<OpenedLog> {
  const { client, namespace, owner, nats, logFile, cluster, patienceMs } = options
  if (nats === undefined) {
    return openLog([`controller of ${cluster}`], logFile === undefined ? {} : { logFile })
  }
  const place = { namespace, name: digestSecretName, key: 'key', owner }
  const key = await readSharedSecret(client, place, () => randomBytes(32))
  const log = await openNatsLog({ servers: nats.split(','), patienceMs })
  return {
    log,
    digestKey: new DigestKey(key),
    path: nats.split(',').map(placeOf).join(','),
    notices: [],
    close: () => log.close(),
  }
}

/** Reads objects of a cluster that may not exist, such as the lease of the controller. */
import {
  type KubeClient,
  KubeError,
  type KubeObject,
  objectPath,
} from '../../../control/kube/index.ts'

interface LeaseSpec {
  readonly holderIdentity?: string
  readonly leaseDurationSeconds?: number
  readonly renewTime?: string
}

/** Returns the spec of the lease for which the replicas of a controller compete; undefined if it does not exist. */
export async function leaseIn(
  client: KubeClient,
  namespace: string,
): Promise<LeaseSpec | undefined> {
  const path = objectPath(leases, namespace, 'sluice-controller')
  return (await find(client, path))?.spec as LeaseSpec | undefined
}

const leases = { group: 'coordination.k8s.io', version: 'v1', plural: 'leases' }

/** @returns undefined if the object does not exist */
export async function find(client: KubeClient, path: string): Promise<KubeObject | undefined> {
  try {
    return await client.get(path)
  } catch (error) {
    if (error instanceof KubeError && error.isNotFound) return undefined
    throw error
  }
}

/** Reads the lease of the controller, and other objects that may not exist. */
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

/** The Lease object of the replicas of a controller; undefined if there is none. */
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

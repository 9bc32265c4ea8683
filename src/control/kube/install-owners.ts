/**
 * The objects of the installation that own what the controller creates for itself. Kubernetes removes
 * objects whose owner was deleted, so an uninstall also removes the lease, the shared Secret and the
 * default class.
 */
import type { KubeClient, KubeObject } from './client.ts'
import { type ApiPath, objectPath } from './paths.ts'

/** An entry of metadata.ownerReferences in the Kubernetes API. */
export interface OwnerReference {
  readonly apiVersion: string
  readonly kind: string
  readonly name: string
  readonly uid: string
}

export interface InstallOwners {
  /** Owner of objects in the controller's own namespace. */
  readonly local?: OwnerReference
  /** Owner of cluster-scoped objects; it must be cluster-scoped too. */
  readonly clusterWide?: OwnerReference
}

interface InstallNames {
  readonly namespace: string
  /** Name of the controller's Deployment. */
  readonly deployment?: string | undefined
  /** Name of a ClusterRole of the installation. */
  readonly clusterRole?: string | undefined
}

const deployments: ApiPath = { group: 'apps', version: 'v1', plural: 'deployments' }
const clusterRoles: ApiPath = {
  group: 'rbac.authorization.k8s.io',
  version: 'v1',
  plural: 'clusterroles',
}

/** @throws KubeError if a configured owner does not exist or may not be read */
export async function findInstallOwners(
  client: KubeClient,
  { namespace, deployment, clusterRole }: InstallNames,
): Promise<InstallOwners> {
  const reference = async (kind: string, path: ApiPath, place: string, name: string) => {
    const { metadata }: KubeObject = await client.get(objectPath(path, place, name))
    const apiVersion = `${path.group}/${path.version}`
    return { apiVersion, kind, name, uid: metadata.uid ?? '' }
  }
  return {
    ...(deployment !== undefined && {
      local: await reference('Deployment', deployments, namespace, deployment),
    }),
    ...(clusterRole !== undefined && {
      clusterWide: await reference('ClusterRole', clusterRoles, '', clusterRole),
    }),
  }
}

/** Returns the `ownerReferences` of an object's metadata, or no field if there is no owner. */
export function ownedBy(owner: OwnerReference | undefined) {
  return owner === undefined ? {} : { ownerReferences: [owner] }
}

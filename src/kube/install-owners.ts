/**
 * The objects of the installation that own what the controller makes for itself. A cluster removes
 * what has lost its owner, so that an uninstall takes the lease, the shared Secret and the default
 * class along.
 */
import type { KubeClient, KubeObject } from './client.ts'
import { type ApiPath, objectPath } from './paths.ts'

/** metadata.ownerReferences[] of the Kubernetes API. */
export interface OwnerReference {
  readonly apiVersion: string
  readonly kind: string
  readonly name: string
  readonly uid: string
}

export interface InstallOwners {
  /** Of objects in the controller's own namespace. */
  readonly local?: OwnerReference
  /** Of objects of the cluster, whose owner must be one too. */
  readonly clusterWide?: OwnerReference
}

interface InstallNames {
  readonly namespace: string
  /** The controller's Deployment. */
  readonly deployment?: string | undefined
  /** A ClusterRole of the installation. */
  readonly clusterRole?: string | undefined
}

const deployments: ApiPath = { group: 'apps', version: 'v1', plural: 'deployments' }
const clusterRoles: ApiPath = {
  group: 'rbac.authorization.k8s.io',
  version: 'v1',
  plural: 'clusterroles',
}

/**
 * Looks the owners up.
 * @throws KubeError where one that is named is not there or may not be read
 */
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

/** The field of an object's metadata; nothing where there is no owner. */
export function ownedBy(owner: OwnerReference | undefined) {
  return owner === undefined ? {} : { ownerReferences: [owner] }
}

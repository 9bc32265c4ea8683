export { isAllowed, userOfToken } from './access-review.ts'
export {
  fieldManager,
  KubeClient,
  type KubeList,
  type KubeObject,
  type LiveObject,
  type Query,
} from './client.ts'
export { ClusterConfigError, type KubernetesCluster, openCluster } from './cluster.ts'
export { KubeError } from './error.ts'
export {
  findInstallOwners,
  type InstallOwners,
  type OwnerReference,
  ownedBy,
} from './install-owners.ts'
export { type ApiPath, collectionPath, objectPath } from './paths.ts'
export { readSharedSecret } from './shared-secret.ts'
export { reviewToken } from './token-review.ts'

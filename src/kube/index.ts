export {
  fieldManager,
  KubeClient,
  type KubeList,
  type KubeMeta,
  type KubeObject,
  type Query,
  type RequestOptions,
  type WatchEvent,
} from './client.ts'
export { type Cluster, ClusterConfigError, openCluster } from './cluster.ts'
export { KubeError } from './error.ts'
export {
  findInstallOwners,
  type InstallNames,
  type InstallOwners,
  type OwnerReference,
  ownedBy,
} from './install-owners.ts'
export type { LiveObject } from './live-object.ts'
export { type ApiPath, collectionPath, objectPath } from './paths.ts'
export { readSharedSecret, type SharedSecret } from './shared-secret.ts'
export { reviewToken, serviceAccountOf, type TokenIdentity } from './token-review.ts'

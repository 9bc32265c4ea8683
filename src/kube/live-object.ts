import type { ApiPath } from './paths.ts'

/** What a status writer needs to know of an object as it is in the cluster now. */
export interface LiveObject {
  readonly kind: string
  readonly path: ApiPath
  /** Empty for cluster-scoped kinds. */
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly resourceVersion: string
  readonly generation: number
  readonly isDeleting: boolean
  readonly status: Readonly<Record<string, unknown>> | undefined
}

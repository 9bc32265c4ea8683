import type { FetchedKeys } from '../../ground/model/key-sets.ts'
import type { ObjectKey } from '../../ground/model/names.ts'
import type { Status } from '../desired/status-store.ts'
import type { StoredInputs } from './log-inputs.ts'
import type { StoredStages } from './version-stages.ts'

/** The state of a fold as JSON. */
export interface FoldSnapshot extends StoredInputs, StoredStages {
  readonly position: number
  readonly actors: readonly (readonly [ObjectKey, unknown])[]
  readonly delivery: unknown
  readonly keySets: readonly (readonly [uri: string, FetchedKeys])[]
  readonly deployments: unknown
  /** Kinds that a setting excludes. Not set before a listing. */
  readonly unread?: readonly string[]
  readonly definitions?: string
  readonly statuses: readonly (readonly [ObjectKey, Status])[]
  /** Epoch of the newest lease holder. Not set if there was none. */
  readonly epoch?: number
}

export interface Digests {
  readonly desired: string
  readonly status: string
}

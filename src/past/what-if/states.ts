import type { ObjectKey } from '../../ground/model/names.ts'
import type { Fold } from '../replay/index.ts'

export type ObjectChange = 'added' | 'changed' | 'removed'

/** A state, and the same state after a change. */
export interface ComparedStates {
  readonly present: Fold
  /** The candidate. */
  readonly fold: Fold
  /** The objects that the candidate changes, including those whose change has no effect. */
  readonly changes: ReadonlyMap<ObjectKey, ObjectChange>
}

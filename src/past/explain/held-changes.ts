import type { HeldChange } from '../../control/actors/protected-changes.ts'
import { type ObjectRef, parseObjectKey } from '../../ground/model/names.ts'
import type { Fold } from '../replay/index.ts'

/** A change that `changeProtection` holds, with its objects. */
export interface WaitingChange extends HeldChange {
  readonly objects: readonly ObjectRef[]
}

/** The changes that are held. */
export const heldChanges = (fold: Fold): WaitingChange[] =>
  Array.from(fold.changes.held.values(), (change) => ({
    ...change,
    objects: objectsThatWait(fold, (held) => held === change.position),
  }))

/** The objects that wait in changes that `isMeant` accepts by their positions; undefined if not judged yet. */
export const objectsThatWait = (
  { changes }: Fold,
  isMeant: (held: number | undefined) => boolean,
): ObjectRef[] =>
  Array.from(changes.waiting).flatMap(([key, { held }]) =>
    isMeant(held) ? [parseObjectKey(key)] : [],
  )

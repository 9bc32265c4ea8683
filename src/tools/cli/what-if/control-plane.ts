/** What a candidate changes in the control plane: objects, conditions, resources and overridden policies. */

import type { Condition } from '../../../ground/model/conditions.ts'
import { type ObjectRef, parseObjectKey } from '../../../ground/model/names.ts'
import {
  type ConditionDifference,
  conditionDifferences,
  placedConditions,
} from '../../../ground/model/placed-conditions.ts'
import {
  compareStates,
  contentOf,
  type StateDifferences,
} from '../../../past/explain/differences.ts'
import type { ObjectChange } from '../../../past/what-if/states.ts'
import { newlyOverridden, type OverriddenPolicy } from './overridden.ts'
import type { States } from './state.ts'

type ConditionValue = Pick<Condition, 'status' | 'reason' | 'message'>

/** A condition that changes. `from` is null if the object gets it, `to` if the object loses it. */
export interface ChangedCondition extends Pick<ConditionDifference, 'place' | 'type'> {
  readonly object: ObjectRef
  readonly from: ConditionValue | null
  readonly to: ConditionValue | null
}

interface RefusedObject extends ObjectRef {
  readonly problems: readonly { readonly path: string; readonly message: string }[]
}

export interface ControlPlaneChanges {
  /** The objects that the candidate adds, changes and removes. */
  readonly objects: Readonly<Record<ObjectChange, readonly ObjectRef[]>>
  /** Objects of the candidate that are invalid; their last valid versions stay in force. */
  readonly refused: readonly RefusedObject[]
  readonly conditions: readonly ChangedCondition[]
  /** The changed conditions that report a new conflict. */
  readonly conflicts: readonly ChangedCondition[]
  readonly overridden: readonly OverriddenPolicy[]
  readonly resources: StateDifferences['resources']
}

const withoutTimes = (condition: Condition | undefined): ConditionValue | null => {
  if (condition === undefined) return null
  const { status, reason, message } = condition
  return { status, reason, message }
}

const isConflict = ({ type, to }: ChangedCondition): boolean =>
  to !== null && (type === 'Conflicted' ? to.status === 'True' : to.reason === 'Conflicted')

export function controlPlaneChanges({ present, fold, changes }: States): ControlPlaneChanges {
  // Conditions from proxies are ignored, because it is unknown whether proxies accept the candidate.
  const { statuses, resources } = compareStates(contentOf(present), contentOf(fold), true)
  const conditions = statuses.flatMap(({ key, before, after }) =>
    conditionDifferences(placedConditions(before), placedConditions(after)).map(
      ({ place, type, from, to }) => ({
        object: parseObjectKey(key),
        place,
        type,
        from: withoutTimes(from),
        to: withoutTimes(to),
      }),
    ),
  )
  const objectsOf = (change: ObjectChange) =>
    [...changes].flatMap(([key, known]) => (known === change ? [parseObjectKey(key)] : []))
  const refused = [...changes.keys()].flatMap((key) => {
    const problems = fold.graph.object(key)?.refused?.problems
    return problems === undefined ? [] : [{ ...parseObjectKey(key), problems }]
  })
  const isPlaced = Object.values(resources).some((keys) =>
    keys.some((key) => /^(policy|route|listener|service)\//.test(key)),
  )
  return {
    objects: {
      added: objectsOf('added'),
      changed: objectsOf('changed'),
      removed: objectsOf('removed'),
    },
    refused,
    conditions,
    conflicts: conditions.filter(isConflict),
    overridden: isPlaced ? newlyOverridden(present, fold) : [],
    resources,
  }
}

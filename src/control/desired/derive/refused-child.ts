/**
 * Routes and ListenerSets that never had a valid version: their problems are reported in statuses for
 * the parents that they refer to, as far as these can be read.
 */
import type { ParentRef } from '../../api/gateway-api/common.ts'
import { conditionFalse } from '../conditions.ts'
import type { Derived, Reader } from '../graph.ts'
import { type ObjectState, problemsText } from '../object-state.ts'
import { gatewayOfSet } from '../specs.ts'
import { type GatewayView, gatewayStage } from './gateway.ts'
import { attachToParent, parentStatus } from './route-attachment.ts'

function parentsOf({ refused }: ObjectState): ParentRef[] {
  return (refused?.targets ?? []).flatMap(({ matchLabels: _, name, ...parent }) =>
    name === undefined ? [] : [{ ...parent, name }],
  )
}

export function refusedRoute(self: ObjectState, read: Reader): Derived {
  const { refused } = self
  if (refused === undefined) return {}
  const parents = parentsOf(self).filter(
    (parent) => attachToParent(self.ref, [], parent, read) !== undefined,
  )
  if (parents.length === 0) return {}
  const why = problemsText(refused)
  const conditions = [conditionFalse('Accepted', 'UnsupportedValue', refused.generation, why)]
  return { status: { parents: parents.map((parent) => parentStatus(parent, conditions)) } }
}

export function refusedListenerSet(self: ObjectState, read: Reader): Derived {
  const { refused } = self
  const [parentRef] = parentsOf(self)
  if (refused === undefined || parentRef === undefined) return {}
  const gateway = gatewayOfSet(self.ref.namespace, { parentRef })
  if (gateway === undefined) return {}
  if (read.value<GatewayView>(gatewayStage.name, gateway) === undefined) return {}
  const conditions = ['Accepted', 'Programmed'].map((type) =>
    conditionFalse(type, 'Invalid', refused.generation, problemsText(refused)),
  )
  return { status: { conditions } }
}

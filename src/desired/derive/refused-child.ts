/**
 * Routes and ListenerSets of which no version was ever valid: what is wrong with them stands under
 * the parents that they name, as far as those can be read.
 */
import type { ParentRef } from '../../api/gateway-api/common.ts'
import { controllerName } from '../../api/names.ts'
import { conditionFalse } from '../conditions.ts'
import type { Derived, Reader } from '../graph.ts'
import type { ObjectState } from '../object-state.ts'
import { gatewayOfSet } from '../specs.ts'
import { type GatewayView, gatewayStage } from './gateway.ts'
import { attachToParent, statusParentRef } from './route-attachment.ts'

function parentsOf({ refused }: ObjectState): ParentRef[] {
  return (refused?.targets ?? []).flatMap(({ matchLabels: _, name, ...parent }) =>
    name === undefined ? [] : [{ ...parent, name }],
  )
}

function problemsOf({ refused }: ObjectState): string {
  return (refused?.problems ?? []).map(({ path, message }) => `${path}: ${message}`).join('; ')
}

export function refusedRoute(self: ObjectState, read: Reader): Derived {
  if (self.refused === undefined) return {}
  const { generation } = self.refused
  const parents = parentsOf(self).filter(
    (parent) => attachToParent(self.ref, [], parent, read) !== undefined,
  )
  if (parents.length === 0) return {}
  const conditions = [conditionFalse('Accepted', 'UnsupportedValue', generation, problemsOf(self))]
  return {
    status: {
      parents: parents.map((parent) => ({
        parentRef: statusParentRef(parent),
        controllerName,
        conditions,
      })),
    },
  }
}

export function refusedListenerSet(self: ObjectState, read: Reader): Derived {
  const [parentRef] = parentsOf(self)
  if (self.refused === undefined || parentRef === undefined) return {}
  const { generation } = self.refused
  const gateway = gatewayOfSet(self.ref.namespace, { parentRef })
  if (gateway === undefined) return {}
  if (read.value<GatewayView>(gatewayStage.name, gateway) === undefined) return {}
  const conditions = ['Accepted', 'Programmed'].map((type) =>
    conditionFalse(type, 'Invalid', generation, problemsOf(self)),
  )
  return { status: { conditions } }
}

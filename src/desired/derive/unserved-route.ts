/** Route kinds that a later version will serve: accepted by the schema, refused in their status. */
import { conditionFalse, conditionTrue } from '../conditions.ts'
import type { Derived, Reader } from '../graph.ts'
import type { ObjectState } from '../object-state.ts'
import { controllerName, type RouteSpec, specOf } from '../shapes.ts'
import { refusedRoute } from './refused-child.ts'
import { attachToParent, statusParentRef } from './route-attachment.ts'

/** Says under every parent of ours that the kind is not served. */
export function unservedRoute(self: ObjectState, read: Reader): Derived {
  if (self.object === undefined) return refusedRoute(self, read)
  const spec = specOf<RouteSpec>(self.object)
  const message = `${self.ref.kind} is not supported yet; its traffic is not served`
  const parents = (spec.parentRefs ?? []).filter(
    (parentRef) => attachToParent(self.ref, spec.hostnames ?? [], parentRef, read) !== undefined,
  )
  if (parents.length === 0) return {}
  const conditions = [
    conditionFalse('Accepted', 'UnsupportedValue', self.generation, message),
    conditionTrue('ResolvedRefs', 'ResolvedRefs', self.generation),
  ]
  return {
    status: {
      parents: parents.map((parentRef) => ({
        parentRef: statusParentRef(parentRef),
        controllerName,
        conditions,
      })),
    },
  }
}

/** Typed access to specs of observed objects, which were validated by the schemas of their kinds. */

import { gatewayGroup } from '../../ground/model/api-names.ts'
import type { ObjectRef } from '../../ground/model/names.ts'
import type { ListenerSetSpec } from '../api/gateway-api/gateway.ts'
import type { KindName, ObjectOf } from '../api/kinds.ts'
import type { ObservedObject } from './object-state.ts'

type KindWithSpec = Extract<ObjectOf<KindName>, { readonly spec?: unknown }>['kind']

/** The spec of a validated object of the given kind; an empty object if it has no spec. */
export function specOf<Kind extends KindWithSpec>(
  object: ObservedObject,
): NonNullable<ObjectOf<Kind>['spec']> {
  return (object.spec ?? {}) as NonNullable<ObjectOf<Kind>['spec']>
}

/** The Gateway that a ListenerSet belongs to; undefined if its parent is of another kind. */
export function gatewayOfSet(
  namespace: string,
  { parentRef }: Pick<ListenerSetSpec, 'parentRef'>,
): ObjectRef | undefined {
  const { group = gatewayGroup, kind = 'Gateway', name } = parentRef
  if (group !== gatewayGroup || kind !== 'Gateway') return undefined
  return { kind, namespace: parentRef.namespace ?? namespace, name }
}

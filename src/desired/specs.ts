/** Specs of observed objects, typed by the schemas that they were validated with. */
import type { ListenerSetSpec } from '../api/gateway-api/gateway.ts'
import type { KindName, ObjectOf } from '../api/kinds.ts'
import { gatewayGroup } from '../api/names.ts'
import type { ObjectRef } from '../model/names.ts'
import type { ObservedObject } from './object-state.ts'

type KindWithSpec = Extract<ObjectOf<KindName>, { readonly spec?: unknown }>['kind']

export type SpecOf<Kind extends KindWithSpec> = NonNullable<ObjectOf<Kind>['spec']>

/** The spec of a validated object of a kind; an omitted spec reads as an empty one. */
export function specOf<Kind extends KindWithSpec>(object: ObservedObject): SpecOf<Kind> {
  return (object.spec ?? {}) as SpecOf<Kind>
}

/** The Gateway that a ListenerSet joins; undefined if its parent is of another kind. */
export function gatewayOfSet(
  namespace: string,
  { parentRef }: Pick<ListenerSetSpec, 'parentRef'>,
): ObjectRef | undefined {
  const { group = gatewayGroup, kind = 'Gateway', name } = parentRef
  if (group !== gatewayGroup || kind !== 'Gateway') return undefined
  return { kind, namespace: parentRef.namespace ?? namespace, name }
}

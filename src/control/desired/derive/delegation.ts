/**
 * Delegation: a rule of an HTTPRoute may refer to other HTTPRoutes in place of backends. Their rules then serve its
 * requests, with the hostnames and listeners of the route that is attached to a Gateway.
 *
 * ```
 *   Gateway ◄─ parentRefs ─ HTTPRoute site ─ backendRefs ─► HTTPRoute team ─ backendRefs ─► HTTPRoute part
 *                           /shop                           /shop/cart                      /shop/cart/items
 * ```
 *
 * This stage resolves the references. `delegated-rules.ts` joins the rules.
 */
import { gatewayGroup } from '../../../ground/model/api-names.ts'
import { type ObjectRef, objectKey } from '../../../ground/model/names.ts'
import type { BackendReference } from '../../../ground/model/references.ts'
import type { HttpRouteSpec } from '../../api/gateway-api/http-route.ts'
import { type Failure, notOwn } from '../conditions.ts'
import type { Contribution, Derived, Reader, Stage } from '../graph.ts'
import type { IndexDefinition } from '../object-indexes.ts'
import type { ObjectState } from '../object-state.ts'
import { specOf } from '../specs.ts'
import { grantFailure } from './references.ts'

const kind = 'HTTPRoute'

/** HTTPRoutes by namespace, for references to all of them. */
export const routesByNamespace: IndexDefinition = {
  name: 'http-routes',
  kinds: [kind],
  keys: ({ ref }) => [ref.namespace],
}

/** A rule that delegates requests. */
export interface DelegatingRule {
  readonly route: ObjectRef
  readonly ruleIndex: number
}

/** What the references of a rule lead to. */
interface Delegation {
  readonly hasRoutes: boolean
  readonly failures: readonly Failure[]
}

/** Delegations by the index of their rule. */
type DelegationView = Readonly<Record<number, Delegation>>

/** Relation from an HTTPRoute to the rules that delegate to it, as JSON. */
const relation = 'delegates'

export const delegationStage: Stage = {
  name: 'delegation',
  kinds: [kind],
  inputs({ ref, object }) {
    if (object === undefined) return []
    const { rules = [] } = specOf<typeof kind>(object)
    return [ref, ...rules.map(({ backendRefs }) => backendRefs)]
  },
  derive({ ref, object }: ObjectState, read: Reader): Derived {
    if (object === undefined) return {}
    const value: Record<number, Delegation> = {}
    const contributions: Contribution[] = []
    const { rules = [] } = specOf<typeof kind>(object)
    rules.forEach(({ backendRefs = [] }, ruleIndex) => {
      const references = backendRefs.filter(isRouteReference)
      if (references.length === 0) return
      const selected = references.map((reference) => selectRoutes(reference, ref, read))
      const found = selected.flatMap(({ routes }) => routes)
      const failures = selected.flatMap(({ failure }) => failure ?? [])
      const usable = found.filter((route) => !leadsTo(route, ref, read))
      if (usable.length < found.length) failures.push(cycleFailure(ref))
      value[ruleIndex] = { hasRoutes: usable.length > 0, failures }
      const member = JSON.stringify({ route: ref, ruleIndex } satisfies DelegatingRule)
      for (const route of usable) contributions.push([relation, objectKey(route), member])
    })
    return contributions.length === 0 && Object.keys(value).length === 0
      ? {}
      : { value, contributions }
  },
}

/** Whether a backendRef of an HTTPRoute delegates to other HTTPRoutes. */
export const isRouteReference = ({ group = '', kind: referred }: BackendReference): boolean =>
  group === gatewayGroup && referred === kind

/** The delegation of a rule; undefined if it refers to no HTTPRoutes. */
export const delegationOf = (route: ObjectRef, ruleIndex: number, read: Reader) =>
  read.value<DelegationView>(delegationStage.name, route)?.[ruleIndex]

/** The rules that delegate to the route. */
export const delegatingRules = (route: ObjectRef, read: Reader): readonly DelegatingRule[] =>
  read.members(relation, objectKey(route)).map((member) => JSON.parse(member) as DelegatingRule)

const cycleFailure = (route: ObjectRef): Failure => ({
  reason: 'DelegationCycle',
  message: `a backendRef leads back to HTTPRoute ${route.namespace}/${route.name}`,
  ...notOwn,
})

interface Selection {
  readonly routes: readonly ObjectRef[]
  readonly failure?: Failure
}

/** The routes that a reference names: one, all of a namespace (`*`), or those with a label (`key=value`). */
function selectRoutes(
  { name, namespace: given }: BackendReference,
  from: ObjectRef,
  read: Reader,
): Selection {
  const namespace = given ?? from.namespace
  const [label, value] = name.split('=', 2)
  if (name !== '*' && value === undefined) return namedRoute({ kind, namespace, name }, from, read)
  const candidates =
    name === '*'
      ? read.index(routesByNamespace.name, namespace)
      : read
          .index('labelled', `${kind}/${namespace}`)
          .filter(({ object }) => object?.metadata.labels?.[label ?? ''] === value)
  const routes = candidates
    .filter(({ ref, object }) => object !== undefined && objectKey(ref) !== objectKey(from))
    .filter((state) => refusalOf(state, from, read) === undefined)
    .map(({ ref }) => ref)
  if (routes.length > 0) return { routes }
  const message = `backendRef to HTTPRoutes ${name}: none in namespace ${namespace} matches and permits it`
  return { routes, failure: { reason: 'BackendNotFound', message, ...notOwn } }
}

function namedRoute(ref: ObjectRef, from: ObjectRef, read: Reader): Selection {
  const state = read.object(kind, ref.namespace, ref.name)
  if (state?.object === undefined) {
    const missing = state === undefined ? 'does not exist' : 'has no valid version'
    const message = `HTTPRoute ${ref.namespace}/${ref.name} ${missing}`
    return { routes: [], failure: { reason: 'BackendNotFound', message, ...notOwn } }
  }
  const failure = refusalOf(state, from, read)
  return failure === undefined ? { routes: [ref] } : { routes: [], failure }
}

/** Returns why a route may not be used; undefined if it names the parent in its parentRefs, or if a grant permits it. */
function refusalOf({ ref, object }: ObjectState, from: ObjectRef, read: Reader) {
  if (object !== undefined && namesParent(specOf<typeof kind>(object), ref.namespace, from)) return
  const failure = grantFailure(from, { group: gatewayGroup, ...ref }, read)
  if (failure === undefined) return undefined
  const message = `${failure.message}, and its parentRefs do not name HTTPRoute ${from.namespace}/${from.name}`
  return { ...failure, message }
}

const namesParent = ({ parentRefs = [] }: HttpRouteSpec, namespace: string, parent: ObjectRef) =>
  parentRefs.some(
    (reference) =>
      reference.kind === kind &&
      (reference.group ?? gatewayGroup) === gatewayGroup &&
      reference.sectionName === undefined &&
      reference.name === parent.name &&
      (reference.namespace ?? namespace) === parent.namespace,
  )

/** Whether delegations of the route reach another one. */
function leadsTo(start: ObjectRef, target: ObjectRef, read: Reader): boolean {
  const seen = new Set<string>()
  const open = [start]
  for (let route = open.pop(); route !== undefined; route = open.pop()) {
    if (objectKey(route) === objectKey(target)) return true
    if (seen.has(objectKey(route))) continue
    seen.add(objectKey(route))
    const object = read.object(kind, route.namespace, route.name)?.object
    if (object === undefined) continue
    const { rules = [] } = specOf<typeof kind>(object)
    const references = rules.flatMap(({ backendRefs = [] }) => backendRefs.filter(isRouteReference))
    const from = route
    open.push(...references.flatMap((reference) => selectRoutes(reference, from, read).routes))
  }
  return false
}

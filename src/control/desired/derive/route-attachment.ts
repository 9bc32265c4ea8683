/** Decides to which listeners a route attaches, and for which hostnames (Gateway API, route attachment). */

import { exactList } from '../../../ground/base/exact-list.ts'
import { controllerName, gatewayGroup } from '../../../ground/model/api-names.ts'
import type { DecidedCondition } from '../../../ground/model/conditions.ts'
import type { ObjectRef } from '../../../ground/model/names.ts'
import type { ParentRef } from '../../api/gateway-api/common.ts'
import { type Failure, notOwn } from '../conditions.ts'
import type { Reader } from '../graph.ts'
import { admitsNamespace, dependsOnNamespace, readListenerOwner } from './gateway.ts'
import type { ListenerView } from './listeners.ts'

export interface ParentAttachment {
  readonly parentRef: ParentRef
  /** The Gateway as `namespace/name`; for a ListenerSet, the Gateway that it belongs to. */
  readonly gateway: string
  readonly failure: Failure | undefined
  /** A note for the status, although the route is attached to this parent. */
  readonly note?: string
  readonly attached: readonly { listener: ListenerView; hostnames: readonly string[] }[]
}

/** Hostnames of a route by listener key. Several parentRefs may refer to the same listener. */
export function hostnamesByListener(
  parents: readonly ParentAttachment[],
  counts: (listener: ListenerView) => boolean = () => true,
): ReadonlyMap<string, ReadonlySet<string>> {
  const found = new Map<string, ReadonlySet<string>>()
  for (const { listener, hostnames } of parents.flatMap(({ attached }) => attached)) {
    if (!counts(listener)) continue
    found.set(listener.key, new Set([...(found.get(listener.key) ?? []), ...hostnames]))
  }
  return found
}

/**
 * The hostnames that both the listener and the route serve: of each matching pair the more specific
 * one; an empty hostname is any host. Returns undefined if the route has hostnames and none matches.
 */
export function intersectHostnames(
  listener: string,
  route: readonly string[],
): readonly string[] | undefined {
  if (route.length === 0) return [listener]
  if (listener === '') return [...route]
  const shared: string[] = []
  for (const hostname of route) {
    const common = intersectHostname(listener, hostname)
    if (common !== undefined && !shared.includes(common)) shared.push(common)
  }
  return shared.length === 0 ? undefined : exactList(shared)
}

function intersectHostname(a: string, b: string): string | undefined {
  if (a === b) return a
  if (covers(a, b)) return b
  return covers(b, a) ? a : undefined
}

/** `*.example.com` covers `a.example.com`, `a.b.example.com` and `*.b.example.com`, not `example.com`. */
function covers(wildcard: string, hostname: string): boolean {
  if (!wildcard.startsWith('*.')) return false
  const suffix = wildcard.slice(1)
  const name = hostname.startsWith('*.') ? hostname.slice(2) : hostname
  return name.endsWith(suffix) && name.length > suffix.length
}

/** The object that a reference names; undefined if its kind has no listeners. */
function ownerOf(parentRef: ParentRef, namespace: string): ObjectRef | undefined {
  const { group = gatewayGroup, kind = 'Gateway', name } = parentRef
  if (group !== gatewayGroup || (kind !== 'Gateway' && kind !== 'ListenerSet')) return undefined
  return { kind, namespace: parentRef.namespace ?? namespace, name }
}

/** An entry of `status.parents`. The reference gets the defaults that the API server would set. */
export function parentStatus(parentRef: ParentRef, conditions: readonly DecidedCondition[]) {
  return {
    parentRef: { group: gatewayGroup, kind: 'Gateway', ...parentRef },
    controllerName,
    conditions,
  }
}

/** Returns undefined if the parent belongs to another controller, which then writes the status. */
export function attachToParent(
  route: ObjectRef,
  hostnames: readonly string[],
  parentRef: ParentRef,
  read: Reader,
): ParentAttachment | undefined {
  const owner = ownerOf(parentRef, route.namespace)
  if (owner === undefined) return undefined
  const view = readListenerOwner(owner, read)
  if (view === undefined) return undefined
  const { gateway, isAdmitted, listeners } = view
  if (!isAdmitted) {
    const message = `Gateway ${gateway} does not admit ListenerSet ${owner.namespace}/${owner.name}`
    const failure = { reason: 'NoMatchingParent', message, ...notOwn }
    return { parentRef, gateway, failure, attached: [] }
  }
  const found = chooseListeners(listeners, route, hostnames, parentRef, read)
  if ('reason' in found) return { parentRef, gateway, failure: found, attached: [] }
  return { parentRef, gateway, failure: undefined, attached: found.attached }
}

interface ListenerMatch {
  readonly listener: ListenerView
  readonly hostnames: readonly string[]
}

/** Checks name and port, then hostnames, then namespace and kind; returns the first check that fails. */
function chooseListeners(
  own: readonly ListenerView[],
  route: ObjectRef,
  hostnames: readonly string[],
  { sectionName, port }: ParentRef,
  read: Reader,
): Failure | { readonly attached: readonly ListenerMatch[] } {
  const named = own.filter(
    ({ section, port: own }) =>
      (sectionName === undefined || section === sectionName) &&
      (port === undefined || own === port),
  )
  if (named.length === 0) {
    return { reason: 'NoMatchingParent', message: noneNamed(own, sectionName, port) }
  }
  const matching = named.flatMap((listener): ListenerMatch[] => {
    const shared = intersectHostnames(listener.hostname, hostnames)
    return shared === undefined ? [] : [{ listener, hostnames: shared }]
  })
  if (matching.length === 0) {
    const theirs = named.map(({ section, hostname }) => `${section} has ${hostname}`).join(', ')
    const message = `no hostname of the route (${hostnames.join(', ')}) meets that of a listener: ${theirs}`
    return { reason: 'NoMatchingListenerHostname', message }
  }
  const refusals = matching.map(({ listener }) => refusalOf(listener, route, read))
  const attached = matching.filter((_, at) => refusals[at] === undefined)
  if (attached.length > 0) return { attached: exactList(attached) }
  const isOpen = matching.some(({ listener }) =>
    dependsOnNamespace(listener.namespaces, route.namespace, read),
  )
  const message = refusals.join('; ')
  return { reason: 'NotAllowedByListeners', message, ...(isOpen && notOwn) }
}

function noneNamed(
  own: readonly ListenerView[],
  sectionName: string | undefined,
  port: number | undefined,
): string {
  if (own.length === 0) return 'the parent has no listeners'
  const wanted = [
    sectionName === undefined ? '' : ` named ${sectionName}`,
    port === undefined ? '' : ` on port ${port}`,
  ]
  const theirs = own.map(({ section, port }) => `${section} on port ${port}`).join(', ')
  return `the parent has no listener${wanted.join('')}; it has ${theirs}`
}

/** Why the listener does not accept the route; undefined if it does. */
function refusalOf(
  { section, owner, namespaces, kinds }: ListenerView,
  { kind, namespace }: ObjectRef,
  read: Reader,
): string | undefined {
  if (!admitsNamespace(namespaces, 'Same', owner.namespace, namespace, read)) {
    const from = namespaces.from ?? 'Same'
    return `listener ${section} admits no routes of namespace ${namespace} (allowedRoutes.namespaces.from is ${from})`
  }
  if (kinds.includes(kind)) return undefined
  return `listener ${section} takes no ${kind}, only ${kinds.join(', ') || 'kinds that are not supported'}`
}

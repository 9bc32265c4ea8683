/** Which listeners a route attaches to, and for which hostnames (Gateway API, route attachment). */
import type { ParentRef } from '../../api/gateway-api/common.ts'
import { gatewayGroup } from '../../api/names.ts'
import type { ObjectRef } from '../../model/names.ts'
import { elsewhere, type Failure } from '../conditions.ts'
import type { Reader } from '../graph.ts'
import { gatewayOfSet, specOf } from '../specs.ts'
import { admitsNamespace, dependsOnNamespace, type GatewayView, gatewayStage } from './gateway.ts'
import type { ListenerView } from './listeners.ts'

export interface ParentAttachment {
  readonly parentRef: ParentRef
  /** `namespace/name` of the Gateway, of a ListenerSet its parent. */
  readonly gateway: string
  readonly failure: Failure | undefined
  /** What is to be said although it is attached. */
  readonly note?: string
  readonly attached: readonly { listener: ListenerView; hostnames: readonly string[] }[]
}

/**
 * The hostnames that both sides take: the more specific of each pair. Empty = every host.
 * Returns undefined where a route has hostnames and none meets the listener's.
 */
function intersectHostnames(listener: string, route: readonly string[]): string[] | undefined {
  if (route.length === 0) return [listener]
  if (listener === '') return [...route]
  const shared: string[] = []
  for (const hostname of route) {
    const common = intersectHostname(listener, hostname)
    if (common !== undefined && !shared.includes(common)) shared.push(common)
  }
  return shared.length === 0 ? undefined : shared
}

function intersectHostname(a: string, b: string): string | undefined {
  if (a === b) return a
  if (covers(a, b)) return b
  return covers(b, a) ? a : undefined
}

/** `*.example.com` covers `a.example.com`, `a.b.example.com` and `*.b.example.com`, not itself bare. */
function covers(wildcard: string, hostname: string): boolean {
  if (!wildcard.startsWith('*.')) return false
  const suffix = wildcard.slice(1)
  const name = hostname.startsWith('*.') ? hostname.slice(2) : hostname
  return name.endsWith(suffix) && name.length > suffix.length
}

interface Parent {
  readonly gateway: ObjectRef
  readonly owner: ObjectRef
}

function findParent(parentRef: ParentRef, namespace: string, read: Reader): Parent | undefined {
  const { group = gatewayGroup, kind = 'Gateway', name } = parentRef
  const owner = { kind, namespace: parentRef.namespace ?? namespace, name }
  if (group !== gatewayGroup) return undefined
  if (kind === 'Gateway') return { gateway: owner, owner }
  if (kind !== 'ListenerSet') return undefined
  const set = read.object(kind, owner.namespace, name)?.object
  if (set === undefined) return undefined
  const gateway = gatewayOfSet(owner.namespace, specOf<'ListenerSet'>(set))
  return gateway && { gateway, owner }
}

/** The reference as a status echoes it: with the defaults that the API server would have filled in. */
export function statusParentRef(parentRef: ParentRef): ParentRef {
  return { group: gatewayGroup, kind: 'Gateway', ...parentRef }
}

/** Undefined where the parent is not ours: then we write no status for it. */
export function attachToParent(
  route: ObjectRef,
  hostnames: readonly string[],
  parentRef: ParentRef,
  read: Reader,
): ParentAttachment | undefined {
  const parent = findParent(parentRef, route.namespace, read)
  if (parent === undefined) return undefined
  const view = read.value<GatewayView>(gatewayStage.name, parent.gateway)
  if (view === undefined) return undefined
  const gateway = `${parent.gateway.namespace}/${parent.gateway.name}`
  const { owner } = parent
  const own = view.listeners.filter(
    (listener) =>
      listener.owner.kind === owner.kind &&
      listener.owner.namespace === owner.namespace &&
      listener.owner.name === owner.name,
  )
  const isAdmitted = view.listenerSets[`${owner.namespace}/${owner.name}`] !== false
  if (owner.kind === 'ListenerSet' && !isAdmitted) {
    const message = `Gateway ${gateway} does not admit ListenerSet ${owner.namespace}/${owner.name}`
    const failure = { reason: 'NoMatchingParent', message, ...elsewhere }
    return { parentRef, gateway, failure, attached: [] }
  }
  const found = chooseListeners(own, route, hostnames, parentRef, read)
  if ('reason' in found) return { parentRef, gateway, failure: found, attached: [] }
  return { parentRef, gateway, failure: undefined, attached: found.attached }
}

interface Meeting {
  readonly listener: ListenerView
  readonly hostnames: readonly string[]
}

/** Name and port first, then hostnames, then namespace and kind: the failure that came furthest is told. */
function chooseListeners(
  own: readonly ListenerView[],
  route: ObjectRef,
  hostnames: readonly string[],
  { sectionName, port }: ParentRef,
  read: Reader,
): Failure | { readonly attached: readonly Meeting[] } {
  const named = own.filter(
    ({ section, port: own }) =>
      (sectionName === undefined || section === sectionName) &&
      (port === undefined || own === port),
  )
  if (named.length === 0) {
    return { reason: 'NoMatchingParent', message: noneNamed(own, sectionName, port) }
  }
  const meeting = named.flatMap((listener): Meeting[] => {
    const shared = intersectHostnames(listener.hostname, hostnames)
    return shared === undefined ? [] : [{ listener, hostnames: shared }]
  })
  if (meeting.length === 0) {
    const theirs = named.map(({ section, hostname }) => `${section} has ${hostname}`).join(', ')
    const message = `no hostname of the route (${hostnames.join(', ')}) meets that of a listener: ${theirs}`
    return { reason: 'NoMatchingListenerHostname', message }
  }
  const refusals = meeting.map(({ listener }) => refusalOf(listener, route, read))
  const attached = meeting.filter((_, at) => refusals[at] === undefined)
  if (attached.length > 0) return { attached }
  const isOpen = meeting.some(({ listener }) =>
    dependsOnNamespace(listener.namespaces, route.namespace, read),
  )
  const message = refusals.join('; ')
  return { reason: 'NotAllowedByListeners', message, ...(isOpen && elsewhere) }
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

/** Why a listener does not take a route; undefined where it does. */
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

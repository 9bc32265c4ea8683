/** Which listeners a route attaches to, and for which hostnames (Gateway API, route attachment). */
import type { ObjectRef } from '../../model/names.ts'
import type { Failure } from '../conditions.ts'
import type { Reader } from '../graph.ts'
import {
  gatewayGroup,
  gatewayOfSet,
  type ListenerSetSpec,
  type ParentRef,
  specOf,
} from '../shapes.ts'
import { admitsNamespace, type GatewayView, gatewayStage } from './gateway.ts'
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
export function intersectHostnames(
  listener: string,
  route: readonly string[],
): string[] | undefined {
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
  const gateway = gatewayOfSet(owner.namespace, specOf<ListenerSetSpec>(set))
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
  const candidates = view.listeners.filter(
    (listener) =>
      listener.owner.kind === owner.kind &&
      listener.owner.namespace === owner.namespace &&
      listener.owner.name === owner.name &&
      (parentRef.sectionName === undefined || listener.section === parentRef.sectionName) &&
      (parentRef.port === undefined || listener.port === parentRef.port),
  )
  const rejected = (reason: string, message: string): ParentAttachment => ({
    parentRef,
    gateway,
    failure: { reason, message },
    attached: [],
  })
  if (candidates.length === 0) {
    return rejected('NoMatchingParent', 'the parent has no listener with this name and port')
  }
  const allowing = candidates.filter(
    (listener) =>
      listener.kinds.includes(route.kind) &&
      admitsNamespace(listener.namespaces, 'Same', owner.namespace, route.namespace, read),
  )
  if (allowing.length === 0) {
    return rejected('NotAllowedByListeners', 'no listener admits this kind from this namespace')
  }
  const attached = allowing.flatMap((listener) => {
    const shared = intersectHostnames(listener.hostname, hostnames)
    return shared === undefined ? [] : [{ listener, hostnames: shared }]
  })
  if (attached.length === 0) {
    const message = 'no hostname of the route meets the hostname of a listener'
    return rejected('NoMatchingListenerHostname', message)
  }
  return { parentRef, gateway, failure: undefined, attached }
}

/** Derives the listeners of a Gateway and its ListenerSets, what may attach to them, and their problems. */

import { matchesSelector } from '../../../ground/model/label-selector.ts'
import { type ObjectKey, type ObjectRef, objectKey } from '../../../ground/model/names.ts'
import type { AllowedNamespaces, GatewaySpec } from '../../api/gateway-api/gateway.ts'
import type { ListenerSpec } from '../../api/gateway-api/listeners.ts'
import type { Failure } from '../conditions.ts'
import type { Derived, Reader, Stage } from '../graph.ts'
import type { ObjectState } from '../object-state.ts'
import { gatewayOfSet, specOf } from '../specs.ts'
import { admitsUnverified } from './client-validation.ts'
import { type GatewayBackendTls, gatewayBackendTls } from './gateway-backend-tls.ts'
import { isOurClass } from './gateway-class.ts'
import { type GatewayTls, resolveTls } from './listener-tls.ts'
import {
  isUsable,
  isValid,
  type ListenerCandidate,
  type ListenerView,
  listenerCandidate,
  listenerResource,
  markConflicts,
} from './listeners.ts'
import { overlappingTls } from './overlapping-tls.ts'

/** What other stages read about a Gateway; undefined for Gateways of other controllers. */
export interface GatewayView {
  /** Why the whole Gateway is not accepted. */
  readonly failure: Failure | null
  /** Messages about settings that have no effect yet. */
  readonly notes: readonly string[]
  /** The listeners of the Gateway and of the ListenerSets that refer to it, by their owners. */
  readonly owners: Readonly<Record<ObjectKey, OwnedListeners>>
  /** Number of ListenerSets with a valid listener. */
  readonly attachedListenerSets: number
  /** Whether the Gateway allows clients without a valid certificate on any port. */
  readonly admitsUnverified: boolean
  /** Set if `spec.tls.backend` is set. */
  readonly backendTls?: GatewayBackendTls
}

/** The listeners of a Gateway or a ListenerSet. */
export interface OwnedListeners {
  /** False for a ListenerSet that the Gateway does not admit, whose listeners are left out. */
  readonly isAdmitted: boolean
  readonly listeners: readonly ListenerView[]
  /** Listeners, by key, whose TLS configuration overlaps with that of another listener on the port. */
  readonly overlaps: Readonly<Record<string, Failure>>
}

/** Labels of a namespace. The name label is always there, even if the Namespace object is unknown. */
export function namespaceLabels(namespace: string, read: Reader): Record<string, string> {
  const state = read.object('Namespace', '', namespace)
  return { 'kubernetes.io/metadata.name': namespace, ...state?.object?.metadata.labels }
}

/** Whether the rule admits the namespace `candidate`. `fallback` applies if `from` is not set. */
export function admitsNamespace(
  rule: AllowedNamespaces | undefined,
  fallback: 'Same' | 'None',
  own: string,
  candidate: string,
  read: Reader,
): boolean {
  switch (rule?.from ?? fallback) {
    case 'All':
      return true
    case 'Same':
      return own === candidate
    case 'Selector':
      return matchesSelector(rule?.selector, namespaceLabels(candidate, read))
    default:
      return false
  }
}

/** Whether the rule selects labels of a Namespace object that is not known. The object may match later. */
export function dependsOnNamespace(
  rule: AllowedNamespaces | undefined,
  candidate: string,
  read: Reader,
): boolean {
  return rule?.from === 'Selector' && read.object('Namespace', '', candidate) === undefined
}

function addressFailure(spec: GatewaySpec): Failure | null {
  const unknown = (spec.addresses ?? []).find(
    ({ type = 'IPAddress' }) => type !== 'IPAddress' && type !== 'Hostname',
  )
  if (unknown === undefined) return null
  return { reason: 'UnsupportedAddress', message: `address type ${unknown.type} is not supported` }
}

function gatewayNotes(spec: GatewaySpec): string[] {
  const notes: string[] = []
  if (spec.defaultScope !== undefined) notes.push('spec.defaultScope is not supported yet')
  return notes
}

/** The listeners that a Gateway or a ListenerSet contributes to a Gateway. */
function candidatesOf(
  { ref: owner, age: ownerAge }: ObjectState,
  listeners: readonly ListenerSpec[] | undefined,
  gatewayTls: GatewayTls,
  read: Reader,
): ListenerCandidate[] {
  const { namespace, name } = gatewayTls.ref
  const place = { gateway: { namespace, name }, owner, ownerAge }
  return (listeners ?? []).map((listener) =>
    listenerCandidate(place, listener, resolveTls(listener, owner, gatewayTls, read)),
  )
}

/** Returns the ListenerSets that refer to a Gateway, whether the Gateway allows each, and their listeners. */
function candidatesOfSets(
  gateway: GatewayTls,
  rule: AllowedNamespaces | undefined,
  read: Reader,
): { candidates: ListenerCandidate[]; sets: Map<ObjectKey, boolean> } {
  const { namespace, name } = gateway.ref
  const candidates: ListenerCandidate[] = []
  const sets = new Map<ObjectKey, boolean>()
  for (const set of read.index('listener-sets', `${namespace}/${name}`)) {
    if (set.object === undefined) continue
    const isAdmitted = admitsNamespace(rule, 'None', namespace, set.ref.namespace, read)
    sets.set(objectKey(set.ref), isAdmitted)
    if (!isAdmitted) continue
    const { listeners } = specOf<'ListenerSet'>(set.object)
    candidates.push(...candidatesOf(set, listeners, gateway, read))
  }
  return { candidates, sets }
}

/** Groups listeners by their owners. Owners without listeners have an empty group. */
function groupByOwner(
  owners: ReadonlyMap<ObjectKey, boolean>,
  views: readonly ListenerView[],
  overlaps: ReadonlyMap<string, Failure>,
): Record<ObjectKey, OwnedListeners> {
  const byOwner = Map.groupBy(views, ({ owner }) => objectKey(owner))
  return Object.fromEntries(
    [...owners].map(([key, isAdmitted]) => {
      const listeners = byOwner.get(key) ?? []
      const own = listeners.flatMap((view) => {
        const overlap = overlaps.get(view.key)
        return overlap === undefined ? [] : [[view.key, overlap] as const]
      })
      return [key, { isAdmitted, listeners, overlaps: Object.fromEntries(own) }]
    }),
  )
}

const isAttachedSet = ({ listeners }: OwnedListeners): boolean =>
  listeners[0]?.owner.kind === 'ListenerSet' && listeners.some(isValid)

export const gatewayStage: Stage = {
  name: 'gateway',
  kinds: ['Gateway'],
  derive(self: ObjectState, read: Reader): Derived {
    if (self.object === undefined) return {}
    const spec = specOf<'Gateway'>(self.object)
    if (!isOurClass(spec.gatewayClassName, read)) return {}
    const parent = { ref: self.ref, frontend: spec.tls?.frontend }
    const own = candidatesOf(self, spec.listeners, parent, read)
    const { candidates, sets } = candidatesOfSets(parent, spec.allowedListeners?.namespaces, read)
    const all = [...own, ...candidates]
    const listeners = markConflicts(all)
    const backendTls = gatewayBackendTls(self, spec, read)
    const failure = addressFailure(spec)
    const owners = groupByOwner(
      sets.set(objectKey(self.ref), true),
      listeners,
      overlappingTls(all, listeners),
    )
    const attached = failure === null ? Object.values(owners).filter(isAttachedSet) : []
    const view: GatewayView = {
      failure,
      notes: gatewayNotes(spec),
      owners,
      attachedListenerSets: attached.length,
      admitsUnverified: admitsUnverified(spec.tls?.frontend),
      ...(backendTls !== undefined && { backendTls: backendTls.view }),
    }
    const usable = failure === null ? listeners.filter(isUsable) : []
    const tlsOf = new Map(all.map(({ view: { key }, tls }) => [key, tls]))
    return {
      value: view,
      resources: [
        ...usable.map((listener) => listenerResource(listener, tlsOf.get(listener.key))),
        ...(backendTls?.resources ?? []),
      ],
    }
  },
}

/** What routes, policies and statuses read about a Gateway or a ListenerSet. */
interface ListenerOwnerView extends OwnedListeners {
  /** The Gateway as `namespace/name`. */
  readonly gateway: string
  /** Why the whole Gateway is not accepted. */
  readonly failure: Failure | null
}

/**
 * Derives the part of a Gateway that concerns one owner of listeners. A change of a ListenerSet thus derives
 * only its own routes again, and not those of all others.
 */
export const listenerOwnerStage: Stage = {
  name: 'listener-owner',
  kinds: ['Gateway', 'ListenerSet'],
  derive({ ref, object }: ObjectState, read: Reader): Derived {
    if (object === undefined) return {}
    const isSet = ref.kind === 'ListenerSet'
    const gateway = isSet ? gatewayOfSet(ref.namespace, specOf<'ListenerSet'>(object)) : ref
    if (gateway === undefined) return {}
    const view = read.value<GatewayView>(gatewayStage.name, gateway)
    const owned = view?.owners[objectKey(ref)]
    if (view === undefined || owned === undefined) return {}
    const name = `${gateway.namespace}/${gateway.name}`
    const value: ListenerOwnerView = { gateway: name, failure: view.failure, ...owned }
    return { value }
  },
}

/** The listeners of a Gateway or ListenerSet; undefined if it belongs to another controller. */
export const readListenerOwner = (owner: ObjectRef, read: Reader): ListenerOwnerView | undefined =>
  read.value<ListenerOwnerView>(listenerOwnerStage.name, owner)

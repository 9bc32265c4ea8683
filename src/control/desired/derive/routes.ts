/** Derivations that all kinds of routes share, after their parents and targets are resolved. */

import { exactList } from '../../../ground/base/exact-list.ts'
import type { DecidedCondition } from '../../../ground/model/conditions.ts'
import { targetObject } from '../../../ground/model/destinations.ts'
import { type ObjectRef, objectKey } from '../../../ground/model/names.ts'
import type { Attachment, BackendTarget, Resource } from '../../../ground/model/resources.ts'
import { carriesRequests, findRouteKind } from '../../api/kinds.ts'
import { type Failure, joinFailures } from '../conditions.ts'
import type { Contribution, Derived, Reader } from '../graph.ts'
import type { ObjectState } from '../object-state.ts'
import { type BackendView, backendStage } from './backend.ts'
import { poolContributions } from './inference-pool-status.ts'
import { isUsable } from './listeners.ts'
import { type ModelSetView, modelSetStageName } from './model-sets.ts'
import { parentOfSet } from './model-view.ts'
import { rejectedConditions } from './rejected.ts'
import { hostnamesByListener, type ParentAttachment, parentStatus } from './route-attachment.ts'

/** Name of the stage that derives a kind of route. TLSRoute, TCPRoute and UDPRoute share one stage. */
export function routeStageName(kind: string): string {
  const row = findRouteKind(kind)
  const isShared = row !== undefined && !carriesRequests(row)
  return isShared ? 'stream-route' : kind.replace(/Route$/, '-route').toLowerCase()
}

/** What policies read about a route. */
export interface RouteView {
  /** Gateways that accept the route, as `namespace/name`, sorted. */
  readonly gateways: readonly string[]
  readonly ruleNames: readonly string[]
}

/** Joins the failures of a route's references; equal failures are reported once. */
export function unresolved(failures: readonly Failure[]): Failure | undefined {
  if (failures.length === 0) return undefined
  return joinFailures([...new Map(failures.map((failure) => [failure.message, failure])).values()])
}

/** Attachments to usable listeners: one per listener, with the hostnames of all parentRefs. */
export function attachmentsOf(_: Reader, parents: readonly ParentAttachment[]): Attachment[] {
  return [...hostnamesByListener(parents, isUsable)]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([listener, hostnames]) => ({ listener, hostnames: [...hostnames].sort() }))
}

/** What the stage of a route kind derives for a route with parents. */
interface RouteFindings {
  readonly rules: readonly { readonly name?: string }[]
  readonly resources: readonly Resource[]
  /** False if none of the rules can be applied. */
  readonly isAccepted: boolean
  /** Targets to which the route may send traffic. */
  readonly targets: readonly BackendTarget[]
  /** Parents of other routes that delegate requests to this one. */
  readonly through?: readonly ParentAttachment[]
  conditionsOf(parent: ParentAttachment): readonly DecidedCondition[]
}

export function deriveRoute(
  self: ObjectState,
  parents: readonly ParentAttachment[],
  findings: RouteFindings,
  read: Reader,
): Derived {
  const { rules, resources, isAccepted, targets, through = noParents, conditionsOf } = findings
  const ruleNames = exactList(rules.flatMap(({ name }) => (name === undefined ? [] : [name])))
  const { gateways, contributions } = read.part(
    deriveReach,
    self.ref,
    parents,
    through,
    isAccepted,
    targets,
  )
  const value: RouteView = { gateways, ruleNames }
  const rejected = rejectedConditions(self.ref, self.generation, read)
  return {
    value,
    resources,
    contributions,
    ...(parents.length > 0 && {
      status: {
        parents: parents.map((parent) =>
          parentStatus(parent.parentRef, [...conditionsOf(parent), ...rejected]),
        ),
      },
    }),
  }
}

const noParents: readonly ParentAttachment[] = []

/** The Gateways that accept the route, as `namespace/name`, sorted, and where that is counted. */
interface Reach {
  readonly gateways: readonly string[]
  readonly contributions: readonly Contribution[]
}

/** Contributes the route to its listeners' counts, and the Gateways that reach its targets. */
function deriveReach(
  read: Reader,
  ref: ObjectRef,
  parents: readonly ParentAttachment[],
  through: readonly ParentAttachment[],
  isAccepted: boolean,
  targets: readonly BackendTarget[],
): Reach {
  const route = objectKey(ref)
  const contributions: Contribution[] = []
  // attachedRoutes counts accepted routes, even if the listener itself has problems
  // (Gateway API, ListenerStatus.AttachedRoutes).
  const listeners = new Set(
    parents.flatMap(({ attached }) => attached.map(({ listener }) => listener.key)),
  )
  if (isAccepted) {
    for (const listener of listeners) contributions.push(['attached', listener, route])
  }
  const all = [...parents, ...through]
  const accepted = all.filter(({ failure }) => failure === undefined)
  const gateways = [...new Set(accepted.map(({ gateway }) => gateway))].sort()
  const pools = targets.flatMap((target) => poolsBehind(target, read))
  const reached = [...targets, ...pools].flatMap((target) =>
    target.type === 'invalid' ? [] : [objectKey(targetObject(target)), ...behind(target, read)],
  )
  for (const target of new Set(reached)) {
    for (const gateway of gateways) contributions.push(['reach', target, gateway])
  }
  contributions.push(...poolContributions(all, isAccepted, [...targets, ...pools]))
  return { gateways, contributions: exactList(contributions) }
}

/** The InferencePools to which a GatewayBackend sends requests. */
function poolsBehind(target: BackendTarget, read: Reader): readonly BackendTarget[] {
  if (target.type !== 'backend' || parentOfSet(target.namespace, target.name)) return []
  const { pools = [] } = read.value<BackendView>(backendStage.name, targetObject(target)) ?? {}
  return pools.map((pool) => ({ type: 'pool', ...pool }))
}

/** Keys of the Services behind a GatewayBackend, and of the objects in a set of models. */
function behind(target: BackendTarget, read: Reader): readonly string[] {
  if (target.type !== 'backend') return []
  const parent = parentOfSet(target.namespace, target.name)
  if (parent !== undefined) {
    return read.value<ModelSetView>(modelSetStageName, parent)?.objects ?? []
  }
  return read.value<BackendView>(backendStage.name, targetObject(target))?.services ?? []
}

/** What all kinds of routes have in common, once their parents and targets are known. */
import { targetObject } from '../../model/inference-pools.ts'
import { objectKey } from '../../model/names.ts'
import type { Attachment, BackendTarget } from '../../model/resources.ts'
import { allOwn, type Failure } from '../conditions.ts'
import type { Contribution, Reader } from '../graph.ts'
import type { ObjectState } from '../object-state.ts'
import { type BackendView, backendStage } from './backend.ts'
import { poolContributions } from './inference-pool-status.ts'
import { isUsable } from './listeners.ts'
import type { ParentAttachment } from './route-attachment.ts'

/** What policies read of a route. */
export interface RouteView {
  /** Gateways that accept the route, `namespace/name`, sorted. */
  readonly gateways: readonly string[]
  readonly ruleNames: readonly string[]
}

/** The reason of the first, the messages of all. */
export function unresolved(failures: readonly Failure[]): Failure | undefined {
  const first = failures[0]
  if (first === undefined) return undefined
  const messages = new Set(failures.map(({ message }) => message))
  return { reason: first.reason, message: [...messages].join('; '), ...allOwn(failures) }
}

/** Attachments to listeners that serve, one per listener, hostnames united. */
export function attachmentsOf(parents: readonly ParentAttachment[]): Attachment[] {
  const byListener = new Map<string, Set<string>>()
  for (const { listener, hostnames } of parents.flatMap(({ attached }) => attached)) {
    if (!isUsable(listener)) continue
    const known = byListener.get(listener.key) ?? new Set()
    for (const hostname of hostnames) known.add(hostname)
    byListener.set(listener.key, known)
  }
  return [...byListener]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([listener, hostnames]) => ({ listener, hostnames: [...hostnames].sort() }))
}

/**
 * Counts the route at its listeners, and notes which Gateways reach its targets. `isAccepted` is
 * false where no rule of it can be honoured.
 */
export function contributionsOf(
  self: ObjectState,
  parents: readonly ParentAttachment[],
  isAccepted: boolean,
  targets: readonly BackendTarget[],
  read: Reader,
): Contribution[] {
  const route = objectKey(self.ref)
  const contributions: Contribution[] = []
  // attachedRoutes counts routes that are accepted, however the listener itself fares
  // (Gateway API, ListenerStatus.AttachedRoutes).
  const listeners = new Set(
    parents.flatMap(({ attached }) => attached.map(({ listener }) => listener.key)),
  )
  if (isAccepted) {
    for (const listener of listeners) contributions.push(['attached', listener, route])
  }
  const gateways = acceptedGateways(parents)
  const reached = targets.flatMap((target) => [reachKey(target), ...behind(target, read)])
  for (const target of new Set(reached.filter(isText))) {
    for (const gateway of gateways) contributions.push(['reach', target, gateway])
  }
  return [...contributions, ...poolContributions(parents, isAccepted, targets)]
}

function reachKey(target: BackendTarget): string | undefined {
  return target.type === 'invalid' ? undefined : objectKey(targetObject(target))
}

/** What lies behind a backend that selects Services. */
function behind(target: BackendTarget, read: Reader): readonly string[] {
  if (target.type !== 'backend') return []
  const { namespace, name } = target
  const ref = { kind: 'GatewayBackend', namespace, name }
  return read.value<BackendView>(backendStage.name, ref)?.services ?? []
}

function isText(value: string | undefined): value is string {
  return value !== undefined
}

/** Gateways that accept the route, `namespace/name`, sorted. */
export function acceptedGateways(parents: readonly ParentAttachment[]): string[] {
  const accepted = parents.filter(({ failure }) => failure === undefined)
  return [...new Set(accepted.map(({ gateway }) => gateway))].sort()
}

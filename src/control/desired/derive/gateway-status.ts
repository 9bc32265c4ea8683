/** Derives the statuses of Gateways and ListenerSets: listeners, attached routes, programmed state. */

import { gatewayGroup } from '../../../ground/model/api-names.ts'
import type { DecidedCondition } from '../../../ground/model/conditions.ts'
import { type ObjectRef, objectKey } from '../../../ground/model/names.ts'
import {
  conditionFalse,
  conditionOf,
  conditionTrue,
  conditionUnknown,
  type Failure,
  notOwn,
} from '../conditions.ts'
import type { Derived, Reader, Stage } from '../graph.ts'
import { type ObjectState, problemsText } from '../object-state.ts'
import { gatewayOfSet, specOf } from '../specs.ts'
import {
  dependsOnNamespace,
  type GatewayView,
  gatewayStage,
  type OwnedListeners,
  readListenerOwner,
} from './gateway.ts'
import { gatewayAddresses } from './gateway-addresses.ts'
import { type DeploymentView, gatewayDeploymentStage } from './gateway-deployment.ts'
import { isValid, type ListenerView } from './listeners.ts'
import { refusedListenerSet } from './refused-child.ts'
import { rejectedConditions } from './rejected.ts'

/** How far a Gateway or ListenerSet is programmed; the same for all its listeners. */
interface Progress {
  readonly generation: number
  readonly isProgrammed: boolean
  /** What is reported while it is not programmed. */
  readonly pendingFailure: Failure
  /** Why none of its listeners is served. */
  readonly failure: Failure | null
}

/** Error codes of proxies that could not listen on a port. */
const portCodes = new Set(['port_in_use', 'port_not_permitted'])

/** Listeners that a proxy rejects (for example, because the port is in use) are valid but not programmed. */
function programmedFailure(
  listener: ListenerView,
  { isProgrammed, failure, pendingFailure }: Progress,
  read: Reader,
): Failure | undefined {
  if (listener.conflict !== null) return listener.conflict
  const invalid = listener.accepted ?? failure
  if (invalid !== null) return { ...invalid, reason: 'Invalid' }
  if (listener.lacksCertificate) {
    const message = 'no certificate can be used; handshakes fail'
    return { reason: 'Invalid', message, ...notOwn }
  }
  const rejected = read.input<string>(`rejected:${listener.key}`)
  if (rejected !== undefined) {
    const isPort = portCodes.has(read.input<string>(`rejected-code:${listener.key}`) ?? '')
    return { reason: isPort ? 'PortUnavailable' : 'Invalid', message: rejected, ...notOwn }
  }
  return isProgrammed ? undefined : pendingFailure
}

/** Why a Gateway (`namespace/name`) is not programmed, with notes about proxies that do not answer. */
function waitingFor(gateway: string, read: Reader): Failure {
  const isAbsent = read.input<boolean>(`absent:${gateway}`) === true
  const pending = 'no proxy has acknowledged this configuration yet'
  const text = isAbsent ? 'no proxy is connected' : pending
  return { reason: 'Pending', message: withNotes(text, gateway, read), ...notOwn }
}

/** Appends notes about single proxies to a message. */
function withNotes(message: string, gateway: string, read: Reader): string {
  const silent = read.input<string>(`silent:${gateway}`)
  const older = read.input<string>(`older:${gateway}`)
  return [
    message,
    silent && `not waited for, since they do not answer: ${silent}`,
    older && `older than the controller, and serve what they know: ${older}`,
  ]
    .filter((part) => part !== undefined && part !== '')
    .join('; ')
}

function listenerConditions(
  listener: ListenerView,
  overlap: Failure | undefined,
  programmed: Failure | undefined,
  generation: number,
): DecidedCondition[] {
  const { accepted, conflict, resolvedRefs } = listener
  const conflicted =
    conflict === null
      ? conditionFalse('Conflicted', 'NoConflicts', generation, '')
      : conditionTrue('Conflicted', conflict.reason, generation, conflict.message)
  return [
    conditionOf('Accepted', conflict ?? accepted ?? undefined, 'Accepted', generation),
    conflicted,
    conditionOf('Programmed', programmed, 'Programmed', generation),
    conditionOf('ResolvedRefs', resolvedRefs ?? undefined, 'ResolvedRefs', generation),
    // Set only if it is True (Gateway API, ListenerConditionOverlappingTLSConfig).
    ...(overlap === undefined
      ? []
      : [conditionTrue('OverlappingTLSConfig', overlap.reason, generation, overlap.message)]),
  ]
}

interface ListenerStatuses {
  readonly listeners: readonly unknown[]
  readonly usable: number
  readonly broken: readonly string[]
  readonly rejected: string | undefined
}

function listenerStatuses(
  { listeners, overlaps }: OwnedListeners,
  progress: Progress,
  read: Reader,
): ListenerStatuses {
  const broken: string[] = []
  let rejected: string | undefined
  const statuses = listeners.map((listener) => {
    if (!isValid(listener)) broken.push(listener.section)
    const programmed = programmedFailure(listener, progress, read)
    if (programmed?.reason === 'PortUnavailable') rejected ??= programmed.message
    const overlap = overlaps[listener.key]
    return {
      name: listener.section,
      supportedKinds: listener.kinds.map((kind) => ({ group: gatewayGroup, kind })),
      attachedRoutes: read.count('attached', listener.key),
      conditions: listenerConditions(listener, overlap, programmed, progress.generation),
    }
  })
  return { listeners: statuses, usable: listeners.length - broken.length, broken, rejected }
}

function acceptedCondition(
  failure: Failure | null,
  { usable, broken }: ListenerStatuses,
  generation: number,
  notes: readonly string[],
): DecidedCondition {
  if (failure !== null) return conditionOf('Accepted', failure, '', generation)
  const message = broken.length === 0 ? '' : `listeners not valid: ${broken.join(', ')}`
  if (usable === 0 && broken.length > 0) {
    return conditionFalse('Accepted', 'ListenersNotValid', generation, message, notOwn.own)
  }
  const reason = broken.length === 0 ? 'Accepted' : 'ListenersNotValid'
  const text = [message, ...notes].filter((part) => part !== '').join('; ')
  return conditionTrue('Accepted', reason, generation, text)
}

/** Problems of a Gateway that the cluster and its proxies report. */
interface GatewayReports {
  /** Why the cluster refuses objects that the Gateway needs. */
  readonly refused: string | undefined
  /** Set if a proxy rejects the Gateway's configuration as a whole. */
  readonly rejectedWhole: DecidedCondition | undefined
  /** Why clients cannot reach it at the requested addresses. */
  readonly unreachable: Failure | undefined
  /** Names the proxies that do not answer; empty if all do. */
  readonly note: string
}

function gatewayProgrammed(
  accepted: DecidedCondition,
  { rejected }: ListenerStatuses,
  { isProgrammed, pendingFailure }: Progress,
  { refused, rejectedWhole, unreachable, note }: GatewayReports,
): DecidedCondition {
  const { status, message, observedGeneration: generation, own } = accepted
  if (status === 'False') return conditionFalse('Programmed', 'Invalid', generation, message, own)
  if (rejected !== undefined) {
    return conditionFalse('Programmed', 'NoResources', generation, rejected, notOwn.own)
  }
  // Gateway API defines no reason for this case.
  if (refused !== undefined) {
    return conditionFalse('Programmed', 'DeploymentFailed', generation, refused, notOwn.own)
  }
  if (rejectedWhole !== undefined) return rejectedWhole
  const failure = isProgrammed ? unreachable : pendingFailure
  if (failure !== undefined) return conditionOf('Programmed', failure, 'Programmed', generation)
  return conditionTrue('Programmed', 'Programmed', generation, note)
}

/** The reasons differ from those of a Gateway (Gateway API, ListenerSetConditionProgrammed). */
function listenerSetProgrammed(
  accepted: DecidedCondition,
  { rejected }: ListenerStatuses,
  { isProgrammed, pendingFailure }: Progress,
  isParentProgrammed: boolean,
): DecidedCondition {
  const { status, reason, message, observedGeneration: generation, own } = accepted
  if (status === 'False') {
    const parent = reason === 'ParentNotAccepted' ? 'ParentNotProgrammed' : reason
    return conditionFalse('Programmed', parent, generation, message, own)
  }
  if (rejected !== undefined) {
    return conditionFalse('Programmed', 'PortUnavailable', generation, rejected, notOwn.own)
  }
  if (!isParentProgrammed) {
    const text = 'the parent Gateway is not programmed'
    return conditionFalse('Programmed', 'ParentNotProgrammed', generation, text, notOwn.own)
  }
  if (isProgrammed) return conditionTrue('Programmed', 'Programmed', generation)
  return conditionUnknown('Programmed', pendingFailure, generation)
}

export const gatewayStatusStage: Stage = {
  name: 'gateway-status',
  kinds: ['Gateway'],
  derive(self: ObjectState, read: Reader): Derived {
    const view = read.value<GatewayView>(gatewayStage.name, self.ref)
    const owner = readListenerOwner(self.ref, read)
    if (view === undefined || owner === undefined || self.object === undefined) {
      return refusedGateway(self)
    }
    const { generation } = self
    const name = `${self.ref.namespace}/${self.ref.name}`
    const isProgrammed = read.input<number>(`programmed:${objectKey(self.ref)}`) === generation
    const pendingFailure = waitingFor(name, read)
    const progress = { generation, isProgrammed, pendingFailure, failure: view.failure }
    const statuses = listenerStatuses(owner, progress, read)
    const deployment = read.value<DeploymentView>(gatewayDeploymentStage.name, self.ref)
    const failure = view.failure ?? deployment?.failure ?? null
    const notes = [...view.notes, ...(deployment?.notes ?? [])]
    const accepted = acceptedCondition(failure, statuses, generation, notes)
    const spec = specOf<'Gateway'>(self.object)
    const { addresses, failure: unreachable } = gatewayAddresses(name, spec, read)
    const refused = read.input<string>(`deployment:${objectKey(self.ref)}`)
    const [rejectedWhole] = rejectedConditions(self.ref, generation, read)
    const note = withNotes('', name, read)
    const reports = { refused, rejectedWhole, unreachable, note }
    const programmed = gatewayProgrammed(accepted, statuses, progress, reports)
    return {
      status: {
        addresses,
        conditions: [
          accepted,
          programmed,
          ...backendReferences(view, generation),
          ...insecureMode(view, generation),
        ],
        listeners: statuses.listeners,
        attachedListenerSets: view.attachedListenerSets,
      },
    }
  },
}

/** ResolvedRefs for references of the Gateway itself (Gateway API, GatewayConditionResolvedRefs). */
function backendReferences({ backendTls }: GatewayView, generation: number): DecidedCondition[] {
  if (backendTls === undefined) return []
  return [conditionOf('ResolvedRefs', backendTls.failure ?? undefined, 'ResolvedRefs', generation)]
}

/** Set only if it is True (Gateway API, GatewayConditionInsecureFrontendValidationMode). */
function insecureMode({ admitsUnverified }: GatewayView, generation: number): DecidedCondition[] {
  if (!admitsUnverified) return []
  const message =
    'spec.tls.frontend has mode AllowInsecureFallback: clients without a valid certificate are let in'
  const type = 'InsecureFrontendValidationMode'
  return [conditionTrue(type, 'ConfigurationChanged', generation, message)]
}

function refusedGateway(self: ObjectState): Derived {
  const { object, refused } = self
  if (object !== undefined || refused === undefined) return {}
  const { generation } = refused
  const accepted = conditionFalse('Accepted', 'Invalid', generation, problemsText(refused))
  return { status: { conditions: [accepted] } }
}

const parentNotAccepted: Failure = {
  reason: 'ParentNotAccepted',
  message: 'the parent Gateway is not accepted',
  ...notOwn,
}

export const listenerSetStatusStage: Stage = {
  name: 'listener-set-status',
  kinds: ['ListenerSet'],
  derive(self: ObjectState, read: Reader): Derived {
    if (self.object === undefined) return refusedListenerSet(self, read)
    const gateway = gatewayOfSet(self.ref.namespace, specOf<'ListenerSet'>(self.object))
    if (gateway === undefined) return {}
    const owner = readListenerOwner(self.ref, read)
    if (owner === undefined) return {}
    const { generation } = self
    if (!owner.isAdmitted) return notAllowed(self, gateway, read)
    const isProgrammed = read.input<number>(`programmed:${objectKey(self.ref)}`) === generation
    const isParentProgrammed = read.input<number>(`programmed:${objectKey(gateway)}`) !== undefined
    const failure = owner.failure && parentNotAccepted
    const pendingFailure = waitingFor(owner.gateway, read)
    const progress = { generation, isProgrammed, pendingFailure, failure }
    const statuses = listenerStatuses(owner, progress, read)
    const accepted = acceptedCondition(failure, statuses, generation, [])
    const programmed = listenerSetProgrammed(accepted, statuses, progress, isParentProgrammed)
    return { status: { conditions: [accepted, programmed], listeners: statuses.listeners } }
  },
}

function notAllowed({ ref, generation }: ObjectState, gateway: ObjectRef, read: Reader): Derived {
  const parent = read.object('Gateway', gateway.namespace, gateway.name)?.object
  const rule = parent && specOf<'Gateway'>(parent).allowedListeners?.namespaces
  const own = dependsOnNamespace(rule, ref.namespace, read) ? notOwn.own : undefined
  const message = 'spec.allowedListeners of the Gateway does not admit this namespace'
  const conditions = ['Accepted', 'Programmed'].map((type) =>
    conditionFalse(type, 'NotAllowed', generation, message, own),
  )
  return { status: { conditions } }
}

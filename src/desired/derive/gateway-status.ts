/** Statuses of Gateways and ListenerSets: listeners, attached routes, and what is programmed. */
import { gatewayGroup } from '../../api/names.ts'
import type { DecidedCondition } from '../../model/conditions.ts'
import { type ObjectRef, objectKey } from '../../model/names.ts'
import {
  conditionFalse,
  conditionOf,
  conditionTrue,
  conditionUnknown,
  elsewhere,
  type Failure,
} from '../conditions.ts'
import type { Derived, Reader, Stage } from '../graph.ts'
import type { ObjectState } from '../object-state.ts'
import { gatewayOfSet, specOf } from '../specs.ts'
import { dependsOnNamespace, type GatewayView, gatewayStage } from './gateway.ts'
import { gatewayAddresses } from './gateway-addresses.ts'
import { type DeploymentView, gatewayDeploymentStage } from './gateway-deployment.ts'
import { isUsable, type ListenerView } from './listeners.ts'
import { refusedListenerSet } from './refused-child.ts'
import { rejectedConditions } from './rejected.ts'

/** What is the same for all listeners of one Gateway or ListenerSet. */
interface Surroundings {
  readonly generation: number
  readonly isProgrammed: boolean
  /** What it waits for while it is not programmed. */
  readonly waiting: Failure
  /** Why no listener at all is served. */
  readonly failure: Failure | null
}

/** Listeners rejected by the proxy (such as a port that is taken) are valid but not programmed. */
function programmedFailure(
  listener: ListenerView,
  { isProgrammed, failure, waiting }: Surroundings,
  read: Reader,
): Failure | undefined {
  if (listener.conflict !== null) return listener.conflict
  if (listener.accepted !== null) {
    return { ...listener.accepted, reason: 'Invalid' }
  }
  if (failure !== null) return { ...failure, reason: 'Invalid' }
  if (listener.lacksCertificate) {
    return {
      reason: 'Invalid',
      message: 'no certificate can be used; handshakes fail',
      ...elsewhere,
    }
  }
  const rejected = read.fact<string>(`rejected:${listener.key}`)
  if (rejected !== undefined) {
    const isPort = read.fact<string>(`rejected-code:${listener.key}`) === 'port_in_use'
    return { reason: isPort ? 'PortUnavailable' : 'Invalid', message: rejected, ...elsewhere }
  }
  return isProgrammed ? undefined : waiting
}

/** Why a Gateway waits, and whom it no longer waits for; `gateway` is `namespace/name`. */
function waitingFor(gateway: string, read: Reader): Failure {
  const isAbsent = read.fact<boolean>(`absent:${gateway}`) === true
  const text = isAbsent
    ? 'no proxy is connected'
    : 'no proxy has acknowledged this configuration yet'
  return { reason: 'Pending', message: withNotes(text, gateway, read), ...elsewhere }
}

/** A message, and what there is to say of single proxies. */
function withNotes(message: string, gateway: string, read: Reader): string {
  const silent = read.fact<string>(`silent:${gateway}`)
  const older = read.fact<string>(`older:${gateway}`)
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
    // There only where it is true (Gateway API, ListenerConditionOverlappingTLSConfig).
    ...(overlap === undefined
      ? []
      : [conditionTrue('OverlappingTLSConfig', overlap.reason, generation, overlap.message)]),
  ]
}

/**
 * May its owner be accepted for it? A ListenerSet is not for a listener that has no certificate, as
 * the Gateway API's suite wants it; a Gateway is, and the listener says what is missing.
 */
function isValid(listener: ListenerView): boolean {
  const isWithout = listener.owner.kind === 'ListenerSet' && listener.lacksCertificate
  return isUsable(listener) && !isWithout
}

interface ListenerStatuses {
  readonly listeners: readonly unknown[]
  readonly usable: number
  readonly broken: readonly string[]
  readonly rejected: string | undefined
}

function listenerStatuses(
  listeners: readonly ListenerView[],
  overlaps: GatewayView['overlaps'],
  surroundings: Surroundings,
  read: Reader,
): ListenerStatuses {
  const broken: string[] = []
  let rejected: string | undefined
  const statuses = listeners.map((listener) => {
    if (!isValid(listener)) broken.push(listener.section)
    const programmed = programmedFailure(listener, surroundings, read)
    if (programmed?.reason === 'PortUnavailable') rejected ??= programmed.message
    return {
      name: listener.section,
      supportedKinds: listener.kinds.map((kind) => ({ group: gatewayGroup, kind })),
      attachedRoutes: read.count('attached', listener.key),
      conditions: listenerConditions(
        listener,
        overlaps[listener.key],
        programmed,
        surroundings.generation,
      ),
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
    return conditionFalse('Accepted', 'ListenersNotValid', generation, message, elsewhere.own)
  }
  const reason = broken.length === 0 ? 'Accepted' : 'ListenersNotValid'
  const text = [message, ...notes].filter((part) => part !== '').join('; ')
  return conditionTrue('Accepted', reason, generation, text)
}

/** What a Gateway is waiting for, and what there is to say of one that is programmed. */
interface Progress {
  readonly isProgrammed: boolean
  readonly waiting: Failure
  /** Why the cluster does not take what the Gateway needs. */
  readonly refused?: string | undefined
  /** A proxy refuses what it gets as a whole. */
  readonly rejectedWhole?: DecidedCondition | undefined
  /** About proxies that do not answer; empty where all do. */
  readonly note: string
}

function gatewayProgrammed(
  accepted: DecidedCondition,
  { rejected }: ListenerStatuses,
  { isProgrammed, waiting, refused, rejectedWhole, note }: Progress,
  address: Failure | undefined,
): DecidedCondition {
  const { status, message, observedGeneration: generation, own } = accepted
  if (status === 'False') return conditionFalse('Programmed', 'Invalid', generation, message, own)
  if (rejected !== undefined) {
    return conditionFalse('Programmed', 'NoResources', generation, rejected, elsewhere.own)
  }
  // Not a reason of the Gateway API, which has none for it.
  if (refused !== undefined) {
    return conditionFalse('Programmed', 'DeploymentFailed', generation, refused, elsewhere.own)
  }
  if (rejectedWhole !== undefined) return rejectedWhole
  const failure = isProgrammed ? address : waiting
  if (failure !== undefined) return conditionOf('Programmed', failure, 'Programmed', generation)
  return conditionTrue('Programmed', 'Programmed', generation, note)
}

/** The reasons of a ListenerSet differ from a Gateway's (Gateway API, ListenerSetConditionProgrammed). */
function listenerSetProgrammed(
  accepted: DecidedCondition,
  { rejected }: ListenerStatuses,
  { isProgrammed, waiting }: Progress,
  isParentProgrammed: boolean,
): DecidedCondition {
  const { status, reason, message, observedGeneration: generation, own } = accepted
  if (status === 'False') {
    const parent = reason === 'ParentNotAccepted' ? 'ParentNotProgrammed' : reason
    return conditionFalse('Programmed', parent, generation, message, own)
  }
  if (rejected !== undefined) {
    return conditionFalse('Programmed', 'PortUnavailable', generation, rejected, elsewhere.own)
  }
  if (!isParentProgrammed) {
    const text = 'the parent Gateway is not programmed'
    return conditionFalse('Programmed', 'ParentNotProgrammed', generation, text, elsewhere.own)
  }
  if (isProgrammed) return conditionTrue('Programmed', 'Programmed', generation)
  return conditionUnknown('Programmed', waiting.reason, generation, waiting.message)
}

export const gatewayStatusStage: Stage = {
  name: 'gateway-status',
  kinds: ['Gateway'],
  derive(self: ObjectState, read: Reader): Derived {
    const view = read.value<GatewayView>(gatewayStage.name, self.ref)
    if (view === undefined || self.object === undefined) return refusedGateway(self)
    const { generation } = self
    const name = `${self.ref.namespace}/${self.ref.name}`
    const isProgrammed = read.fact<number>(`programmed:${objectKey(self.ref)}`) === generation
    const own = view.listeners.filter(({ owner }) => owner.kind === 'Gateway')
    const waiting = waitingFor(name, read)
    const surroundings = { generation, isProgrammed, waiting, failure: view.failure }
    const statuses = listenerStatuses(own, view.overlaps, surroundings, read)
    const deployment = read.value<DeploymentView>(gatewayDeploymentStage.name, self.ref)
    const failure = view.failure ?? deployment?.failure ?? null
    const notes = [...view.notes, ...(deployment?.notes ?? [])]
    const accepted = acceptedCondition(failure, statuses, generation, notes)
    const spec = specOf<'Gateway'>(self.object)
    const { addresses, failure: unusable } = gatewayAddresses(name, spec, read)
    const refused = read.fact<string>(`deployment:${objectKey(self.ref)}`)
    const [rejectedWhole] = rejectedConditions(self.ref, generation, read)
    const note = withNotes('', name, read)
    const progress = { isProgrammed, waiting, refused, rejectedWhole, note }
    const programmed = gatewayProgrammed(accepted, statuses, progress, unusable)
    const attachedSets = Object.keys(view.listenerSets).filter(
      (set) =>
        view.failure === null &&
        view.listeners.some((listener) => isOfSet(listener, set) && isValid(listener)),
    )
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
        attachedListenerSets: attachedSets.length,
      },
    }
  },
}

/** References of the Gateway itself; there where it has any (Gateway API, GatewayConditionResolvedRefs). */
function backendReferences({ backendTls }: GatewayView, generation: number): DecidedCondition[] {
  if (backendTls === undefined) return []
  return [conditionOf('ResolvedRefs', backendTls.failure ?? undefined, 'ResolvedRefs', generation)]
}

/** There only where it is true (Gateway API, GatewayConditionInsecureFrontendValidationMode). */
function insecureMode({ admitsUnverified }: GatewayView, generation: number): DecidedCondition[] {
  if (!admitsUnverified) return []
  const message =
    'spec.tls.frontend has mode AllowInsecureFallback: clients without a valid certificate are let in'
  const type = 'InsecureFrontendValidationMode'
  return [conditionTrue(type, 'ConfigurationChanged', generation, message)]
}

function refusedGateway(self: ObjectState): Derived {
  if (self.object !== undefined || self.refused === undefined) return {}
  const message = self.refused.problems.map((problem) => `${problem.path}: ${problem.message}`)
  const accepted = conditionFalse(
    'Accepted',
    'Invalid',
    self.refused.generation,
    message.join('; '),
  )
  return { status: { conditions: [accepted] } }
}

function isOfSet({ owner }: ListenerView, set: string): boolean {
  return owner.kind === 'ListenerSet' && `${owner.namespace}/${owner.name}` === set
}

export const listenerSetStatusStage: Stage = {
  name: 'listener-set-status',
  kinds: ['ListenerSet'],
  derive(self: ObjectState, read: Reader): Derived {
    if (self.object === undefined) return refusedListenerSet(self, read)
    const gateway = gatewayOfSet(self.ref.namespace, specOf<'ListenerSet'>(self.object))
    if (gateway === undefined) return {}
    const view = read.value<GatewayView>(gatewayStage.name, gateway)
    if (view === undefined) return {}
    const { generation } = self
    const set = `${self.ref.namespace}/${self.ref.name}`
    if (view.listenerSets[set] !== true) return notAllowed(self, gateway, read)
    const isProgrammed = read.fact<number>(`programmed:${objectKey(self.ref)}`) === generation
    const isParentProgrammed = read.fact<number>(`programmed:${objectKey(gateway)}`) !== undefined
    const own = view.listeners.filter((listener) => isOfSet(listener, set))
    const failure =
      view.failure === null
        ? null
        : {
            reason: 'ParentNotAccepted',
            message: 'the parent Gateway is not accepted',
            ...elsewhere,
          }
    const waiting = waitingFor(`${gateway.namespace}/${gateway.name}`, read)
    const surroundings = { generation, isProgrammed, waiting, failure }
    const statuses = listenerStatuses(own, view.overlaps, surroundings, read)
    const accepted = acceptedCondition(failure, statuses, generation, [])
    const progress = { isProgrammed, waiting, note: '' }
    const programmed = listenerSetProgrammed(accepted, statuses, progress, isParentProgrammed)
    return { status: { conditions: [accepted, programmed], listeners: statuses.listeners } }
  },
}

function notAllowed({ ref, generation }: ObjectState, gateway: ObjectRef, read: Reader): Derived {
  const parent = read.object('Gateway', gateway.namespace, gateway.name)?.object
  const rule = parent && specOf<'Gateway'>(parent).allowedListeners?.namespaces
  const own = dependsOnNamespace(rule, ref.namespace, read) ? elsewhere.own : undefined
  const message = 'spec.allowedListeners of the Gateway does not admit this namespace'
  const conditions = ['Accepted', 'Programmed'].map((type) =>
    conditionFalse(type, 'NotAllowed', generation, message, own),
  )
  return { status: { conditions } }
}

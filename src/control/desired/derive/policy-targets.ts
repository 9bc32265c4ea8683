/** Resolves the targets of a GatewayPolicy: whether they exist, and which Gateways they affect. */

import { gatewayGroup, inferenceGroup, ownGroup } from '../../../ground/model/api-names.ts'
import { type ObjectRef, objectKey } from '../../../ground/model/names.ts'
import { isPortSection, portSection } from '../../../ground/model/port-section.ts'
import type {
  PolicyPhase,
  PolicyResource,
  PolicySection,
  PolicyTarget,
} from '../../../ground/model/resources.ts'
import type { GatewayPolicySpec, PolicyTargetReference } from '../../api/gateway-policy.ts'
import { carriesRequests, findRouteKind, type RouteKind, routeKinds } from '../../api/kinds.ts'
import { backendKindOf } from '../backend-kind.ts'
import { type Failure, notOwn } from '../conditions.ts'
import type { Reader } from '../graph.ts'
import type { ObservedObject } from '../object-state.ts'
import { specOf } from '../specs.ts'
import { type BackendView, backendStage, partsOf } from './backend.ts'
import { type GatewayView, gatewayStage, readListenerOwner } from './gateway.ts'
import { type RouteView, routeStageName } from './routes.ts'

export interface ResolvedTarget {
  readonly target: PolicyTarget
  /** Whether the target and its section exist. Otherwise no requests can be covered. */
  readonly exists: boolean
  /** Gateways that the target affects, as `namespace/name`. */
  readonly gateways: readonly string[]
  /** Why the policy cannot be attached to the target; undefined if it can. */
  readonly problem: TargetProblem | undefined
}

type TargetProblem = Omit<Failure, 'reason'>

interface TargetKind {
  readonly group: string
  /** Policy sections that may be set on the kind. */
  readonly sections: readonly PolicySection[]
  /** Names that `sectionName` may have, and ports if `wanted` is one. */
  sectionNames(
    object: ObservedObject,
    target: ObjectRef,
    read: Reader,
    wanted: string,
  ): readonly string[]
  gateways(target: ObjectRef, read: Reader): readonly string[]
  /** What messages call a section of the target, such as `listener` or `rule`. */
  readonly sectionNoun: string
  /** End of the message about a target that affects no Gateway, after its name. */
  readonly unattachedMessage: string
}

const listenerNames = (object: ObservedObject) =>
  specOf<'Gateway' | 'ListenerSet'>(object).listeners.map(({ name }) => name)

/** The listeners of a Gateway, or its ports, which include those of its ListenerSets. */
function listenersOrPorts(object: ObservedObject, target: ObjectRef, read: Reader, wanted: string) {
  if (!isPortSection(wanted)) return listenerNames(object)
  const { owners = {} } = read.value<GatewayView>(gatewayStage.name, target) ?? {}
  const ofOwners = Object.values(owners).flatMap(({ listeners }) => listeners)
  const ports = [...specOf<'Gateway'>(object).listeners, ...ofOwners].map(({ port }) => port)
  return [...new Set(ports)].map(portSection)
}

/** The Gateway of a Gateway or ListenerSet. */
function gatewayOfOwner(target: ObjectRef, read: Reader): readonly string[] {
  const view = readListenerOwner(target, read)
  return view?.isAdmitted === true ? [view.gateway] : []
}

const routeView = (target: ObjectRef, read: Reader) =>
  read.value<RouteView>(routeStageName(target.kind), target)

const reached = (target: ObjectRef, read: Reader) => read.members('reach', objectKey(target))

/** Relation from a Service or GatewayBackend to the Gateways that reach it only through a policy. */
export const reachByPolicy = 'reach-by-policy'

/** Gateways that reach a Service or GatewayBackend through routes or policies; only for later stages. */
export function reachingGateways(target: ObjectRef, read: Reader): string[] {
  const found = [...reached(target, read), ...read.members(reachByPolicy, objectKey(target))]
  return [...new Set(found)].sort()
}

/** Adds the Gateways that reach the target through policies, which were not known when it was resolved. */
export function withReachByPolicy(resolved: ResolvedTarget, read: Reader): ResolvedTarget {
  const { target, exists, gateways } = resolved
  if (!exists || (target.kind !== 'Service' && target.kind !== 'GatewayBackend')) return resolved
  const all = reachingGateways(target, read)
  return all.length === gateways.length
    ? resolved
    : { ...resolved, gateways: all, problem: undefined }
}

function targetRoute(kind: RouteKind): TargetKind {
  return {
    group: gatewayGroup,
    sections: carriesRequests(kind) ? ['traffic', 'backend'] : ['backend'],
    sectionNoun: 'rule',
    unattachedMessage: 'is accepted by no Gateway of this controller',
    sectionNames: (_, target, read) => routeView(target, read)?.ruleNames ?? [],
    gateways: (target, read) => routeView(target, read)?.gateways ?? [],
  }
}

const portNames = (object: ObservedObject) =>
  (specOf<'Service'>(object).ports ?? []).flatMap(({ name, port }) =>
    name === undefined ? [String(port)] : [name, String(port)],
  )

function partNames(object: ObservedObject, target: ObjectRef, read: Reader): string[] {
  const written = partsOf(specOf<'GatewayBackend'>(object)).map(({ section }) => section)
  const found = read.value<BackendView>(backendStage.name, target)?.sections ?? []
  return [...written, ...found]
}

const unreached = 'is reached by no accepted route or policy'

const targetKinds: ReadonlyMap<string, TargetKind> = new Map(
  Object.entries<TargetKind>({
    Gateway: {
      group: gatewayGroup,
      sections: ['frontend', 'traffic', 'backend'],
      sectionNoun: 'listener',
      unattachedMessage: 'is of a class of another controller, or has no valid version',
      sectionNames: listenersOrPorts,
      gateways: gatewayOfOwner,
    },
    ListenerSet: {
      group: gatewayGroup,
      sections: ['traffic', 'backend'],
      sectionNoun: 'listener',
      unattachedMessage: 'is admitted by no Gateway of this controller',
      sectionNames: listenerNames,
      gateways: gatewayOfOwner,
    },
    ...Object.fromEntries(
      routeKinds
        .filter(({ carries }) => carries !== 'udp')
        .map((kind) => [kind.kind, targetRoute(kind)]),
    ),
    Service: {
      group: '',
      sections: ['backend'],
      sectionNoun: 'port',
      unattachedMessage: unreached,
      sectionNames: portNames,
      gateways: reached,
    },
    GatewayBackend: {
      group: ownGroup,
      sections: ['backend'],
      sectionNoun: 'provider or target',
      unattachedMessage: unreached,
      sectionNames: partNames,
      gateways: reached,
    },
    AgentgatewayModel: {
      group: ownGroup,
      sections: ['backend'],
      sectionNoun: 'section',
      unattachedMessage: unreached,
      sectionNames: () => [],
      gateways: reached,
    },
    InferencePool: {
      group: inferenceGroup,
      sections: ['backend'],
      sectionNoun: 'section',
      unattachedMessage: unreached,
      sectionNames: () => [],
      gateways: reached,
    },
  }),
)

/** Kinds of objects that policies may target. */
export const targetKindNames: readonly string[] = [...targetKinds.keys()]

/** The kinds of targets on which a section may be set. */
export const kindsOfSection = (section: PolicySection): readonly string[] =>
  targetKindNames.filter((kind) => targetKinds.get(kind)?.sections.includes(section))

/** The kinds of targets whose policies may run in phase PreRouting. */
export const earlyKinds = (): readonly string[] => targetKindNames.filter(takesStreams)

/** Whether policies for requests (section `traffic`) can be set on the kind. */
const takesTraffic = (kind: string) => targetKinds.get(kind)?.sections.includes('traffic') === true

/** Gateways and ListenerSets also forward TCP and TLS connections without reading requests. */
const takesStreams = (kind: string) => kind === 'Gateway' || kind === 'ListenerSet'

/**
 * Fields that, if marked unenforceable, close everything behind a target. For requests this is
 * authorization, which no other policy overrides; for calls to backends these are backend fields.
 *
 * @param broken backend fields to close in addition to `auth`
 */
export function closingFields(
  kind: string,
  broken: readonly string[],
): readonly Pick<PolicyResource, 'section' | 'field'>[] {
  const ofRequests = { section: 'traffic', field: 'authorization' } as const
  if (takesTraffic(kind) && !takesStreams(kind)) return [ofRequests]
  const ofBackends = [...new Set(['auth', ...broken])].map((field) => ({
    section: 'backend' as const,
    field,
  }))
  return takesTraffic(kind) ? [ofRequests, ...ofBackends] : ofBackends
}

/** The API group of a kind of target. References of refused policies may lack it or have a wrong one. */
export function groupOfTarget(kind: string): string {
  return targetKinds.get(kind)?.group ?? ''
}

/** Why the section may not be set on the target; undefined if it may. */
export function sectionProblem(section: PolicySection, target: PolicyTarget): string | undefined {
  if (targetKinds.get(target.kind)?.sections.includes(section) === false) {
    return `spec.${section} cannot target ${target.kind}; use ${kindsOfSection(section).join(', ')}`
  }
  if (section === 'frontend' && target.section !== undefined && !isPortSection(target.section)) {
    return 'spec.frontend may target only a whole Gateway or a port of it, without sectionName'
  }
  return undefined
}

/** Why a policy in this phase cannot run on a kind of target; undefined if it can. */
export function phaseProblem(phase: PolicyPhase, kind: string): string | undefined {
  if (phase !== 'PreRouting' || takesStreams(kind)) return undefined
  return `phase PreRouting needs a Gateway, a listener or a ListenerSet as its target, not a ${kind}`
}

function findTargetKind(group: string, kind: string): TargetKind | undefined {
  const known = targetKinds.get(kind)
  return known?.group === group ? known : undefined
}

const noTarget = (group: string, kind: string) => {
  const known = targetKinds.get(kind)
  const hint =
    known === undefined ? `use ${targetKindNames.join(', ')}` : `its group is "${known.group}"`
  return `${kind} of group "${group}" cannot be targeted; ${hint}`
}

/** Why no policy can be attached to objects of this kind; undefined if policies can. */
export function targetKindProblem({ group, kind }: Pick<PolicyTargetReference, 'group' | 'kind'>) {
  return findTargetKind(group, kind) === undefined ? noTarget(group, kind) : undefined
}

/** Why the target may not have a port; undefined if it may. */
export const portProblem = ({ kind, port }: Pick<PolicyTargetReference, 'kind' | 'port'>) =>
  port === undefined || kind === 'Gateway'
    ? undefined
    : `port can only be set for a Gateway, not for a ${kind}`

/** Returns the section of a target, which may be a port. */
export const sectionOf = ({
  sectionName,
  port,
}: Pick<PolicyTargetReference, 'sectionName' | 'port'>): string | undefined =>
  sectionName ?? (port === undefined ? undefined : portSection(port))

/** Whether the section names of the object depend on other objects, which may be missing. */
function hasOpenSections(
  object: ObservedObject,
  target: ObjectRef,
  read: Reader,
  wanted: string,
): boolean {
  // ListenerSets can add ports.
  if (isPortSection(wanted)) return true
  if (findRouteKind(target.kind) !== undefined) return routeView(target, read) === undefined
  if (target.kind !== 'GatewayBackend') return false
  const kind = backendKindOf(specOf<'GatewayBackend'>(object))
  return kind?.definition.hasOpenParts?.(kind.spec) === true
}

function resolveOne(
  reference: PolicyTargetReference,
  namespace: string,
  read: Reader,
): ResolvedTarget {
  const { group, kind, name } = reference
  const sectionName = sectionOf(reference)
  const ref = { kind, namespace, name }
  const target = { ...ref, ...(sectionName !== undefined && { section: sectionName }) }
  const unresolved = (problem: TargetProblem) => ({ target, exists: false, gateways: [], problem })
  const known = findTargetKind(group, kind)
  if (known === undefined) return unresolved({ message: noTarget(group, kind) })
  const misplaced = portProblem(reference)
  if (misplaced !== undefined) return unresolved({ message: misplaced })
  const state = read.object(kind, namespace, name)
  if (state?.object === undefined) {
    const missing = state === undefined ? 'does not exist' : 'has no valid version'
    return unresolved({ message: `${kind} ${namespace}/${name} ${missing}`, ...notOwn })
  }
  const sections =
    sectionName === undefined ? [] : known.sectionNames(state.object, ref, read, sectionName)
  if (sectionName !== undefined && !sections.includes(sectionName)) {
    const names = sections.toSorted().join(', ')
    const found = names === '' ? 'it has none with a name' : `it has ${names}`
    const message = `${kind} ${namespace}/${name} has no ${known.sectionNoun} ${sectionName}; ${found}`
    return unresolved({
      message,
      ...(hasOpenSections(state.object, ref, read, sectionName) && notOwn),
    })
  }
  const gateways = known.gateways(ref, read)
  const problem =
    gateways.length === 0
      ? { message: `${kind} ${namespace}/${name} ${known.unattachedMessage}`, ...notOwn }
      : undefined
  return { target, exists: true, gateways, problem }
}

/** Why the target or its section does not exist; undefined if it does. */
export function targetProblem(target: PolicyTarget, read: Reader): TargetProblem | undefined {
  const { kind, namespace, name, section } = target
  const reference = {
    group: groupOfTarget(kind),
    kind,
    name,
    ...(section !== undefined && { sectionName: section }),
  }
  const { exists, problem } = resolveOne(reference, namespace, read)
  return exists ? undefined : problem
}

/** Resolves all targets of a policy, including those that selectors match, without duplicates. */
export function resolveTargets(
  spec: GatewayPolicySpec,
  namespace: string,
  read: Reader,
): readonly ResolvedTarget[] {
  const resolved = (spec.targetRefs ?? []).map((ref) => resolveOne(ref, namespace, read))
  for (const { matchLabels, ...reference } of spec.targetSelectors ?? []) {
    const { kind } = reference
    const found = read
      .index('labelled', `${kind}/${namespace}`)
      .filter(({ object }) => {
        const labels = object?.metadata.labels ?? {}
        return Object.entries(matchLabels).every(([key, value]) => labels[key] === value)
      })
      .map(({ ref }) => resolveOne({ ...reference, name: ref.name }, namespace, read))
    resolved.push(...found)
    if (found.length === 0) {
      const target = { kind, namespace, name: '' }
      const problem = { message: `no ${kind} matches the selector`, ...notOwn }
      resolved.push({ target, exists: false, gateways: [], problem })
    }
  }
  return uniqueTargets(resolved)
}

function uniqueTargets(targets: readonly ResolvedTarget[]): ResolvedTarget[] {
  const seen = new Map<string, ResolvedTarget>()
  for (const item of targets) {
    const key = `${objectKey(item.target)}#${item.target.section ?? ''}`
    if (!seen.has(key)) seen.set(key, item)
  }
  return [...seen.values()]
}

/** What a GatewayPolicy points at: does it exist, may this section be set there, which Gateways see it? */
import { gatewayGroup, inferenceGroup, ownGroup } from '../../api/names.ts'
import type { GatewayPolicySpec, PolicyTargetReference } from '../../api/policy-spec.ts'
import { type ObjectRef, objectKey } from '../../model/names.ts'
import type { PolicyPhase, PolicySection, PolicyTarget } from '../../model/resources.ts'
import { elsewhere, type Failure } from '../conditions.ts'
import type { Reader } from '../graph.ts'
import type { ObjectState } from '../object-state.ts'
import { gatewayOfSet, specOf } from '../specs.ts'
import { type BackendView, backendStage } from './backend.ts'
import { type GatewayView, gatewayStage } from './gateway.ts'
import type { RouteView } from './routes.ts'

export interface ResolvedTarget {
  readonly target: PolicyTarget
  /** Is there such an object, with such a section? What is not there cannot be covered. */
  readonly exists: boolean
  /** Gateways that the target concerns, `namespace/name`. */
  readonly gateways: readonly string[]
  /** Why the policy cannot be attached there; undefined where it can. */
  readonly problem: TargetProblem | undefined
}

type TargetProblem = Omit<Failure, 'reason'>

interface TargetKind {
  readonly group: string
  /** Sections that may be set on the kind. */
  readonly sections: readonly PolicySection[]
  /** Names that sectionName may have; undefined where every name is refused. */
  sectionNames(target: ObjectState, read: Reader): readonly string[]
  gateways(target: ObjectRef, read: Reader): readonly string[]
  /** What a section of it is called. */
  readonly part: string
  /** Why it concerns no Gateway, after its name. */
  readonly unattached: string
}

function viewOf(target: ObjectRef, read: Reader): GatewayView | undefined {
  return read.value<GatewayView>(gatewayStage.name, target)
}

const nameOf = ({ namespace, name }: ObjectRef): string => `${namespace}/${name}`

function listenerNames(state: ObjectState): readonly string[] {
  if (state.object === undefined) return []
  return specOf<'Gateway' | 'ListenerSet'>(state.object).listeners.map(({ name }) => name)
}

function gatewaysOfSet(target: ObjectRef, read: Reader): readonly string[] {
  const set = read.object('ListenerSet', target.namespace, target.name)?.object
  if (set === undefined) return []
  const gateway = gatewayOfSet(target.namespace, specOf<'ListenerSet'>(set))
  if (gateway === undefined) return []
  const view = viewOf(gateway, read)
  return view?.listenerSets[nameOf(target)] === true ? [nameOf(gateway)] : []
}

/** Stages of route kinds, by kind. */
const routeStages: Readonly<Record<string, string>> = {
  HTTPRoute: 'http-route',
  GRPCRoute: 'grpc-route',
  TLSRoute: 'stream-route',
  TCPRoute: 'stream-route',
}

function routeView(target: ObjectRef, read: Reader): RouteView | undefined {
  const stage = routeStages[target.kind]
  return stage === undefined ? undefined : read.value<RouteView>(stage, target)
}

const reached = (target: ObjectRef, read: Reader) => read.members('reach', objectKey(target))

/** Relation: Service or GatewayBackend -> Gateways that reach it through a policy alone. */
export const reachByPolicy = 'reach-by-policy'

/** Gateways that reach a Service or GatewayBackend, through routes or policies; for later stages. */
export function reachingGateways(target: ObjectRef, read: Reader): string[] {
  const found = [...reached(target, read), ...read.members(reachByPolicy, objectKey(target))]
  return [...new Set(found)].sort()
}

/** What was resolved before it was known what policies reach. */
export function withReachByPolicy(resolved: ResolvedTarget, read: Reader): ResolvedTarget {
  const { target, exists, gateways } = resolved
  if (!exists || (target.kind !== 'Service' && target.kind !== 'GatewayBackend')) return resolved
  const all = reachingGateways(target, read)
  return all.length === gateways.length
    ? resolved
    : { ...resolved, gateways: all, problem: undefined }
}

function route(sections: readonly PolicySection[]): TargetKind {
  return {
    group: gatewayGroup,
    sections,
    part: 'rule',
    unattached: 'is accepted by no Gateway of this controller',
    sectionNames: (state, read) => routeView(state.ref, read)?.ruleNames ?? [],
    gateways: (target, read) => routeView(target, read)?.gateways ?? [],
  }
}

function portNames(state: ObjectState): string[] {
  const spec = state.object === undefined ? {} : specOf<'Service'>(state.object)
  return (spec.ports ?? []).flatMap(({ name, port }) =>
    name === undefined ? [String(port)] : [name, String(port)],
  )
}

function subBackendNames(state: ObjectState, read: Reader): string[] {
  const spec = state.object === undefined ? {} : specOf<'GatewayBackend'>(state.object)
  const providers = (spec.ai?.groups ?? []).flatMap((group) => group.providers)
  const written = [...providers, ...(spec.mcp?.targets ?? [])].map(({ name }) => name)
  const found = read.value<BackendView>(backendStage.name, state.ref)?.sections ?? []
  return [...written, ...found]
}

const unreached = 'is reached by no accepted route or policy'

const targetKinds: Readonly<Record<string, TargetKind>> = {
  Gateway: {
    group: gatewayGroup,
    sections: ['frontend', 'traffic', 'backend'],
    part: 'listener',
    unattached: 'is of a class of another controller, or has no valid version',
    sectionNames: listenerNames,
    gateways: (target, read) => (viewOf(target, read) === undefined ? [] : [nameOf(target)]),
  },
  ListenerSet: {
    group: gatewayGroup,
    sections: ['traffic', 'backend'],
    part: 'listener',
    unattached: 'is admitted by no Gateway of this controller',
    sectionNames: listenerNames,
    gateways: gatewaysOfSet,
  },
  HTTPRoute: route(['traffic', 'backend']),
  GRPCRoute: route(['traffic', 'backend']),
  TLSRoute: route(['backend']),
  TCPRoute: route(['backend']),
  Service: {
    group: '',
    sections: ['backend'],
    part: 'port',
    unattached: unreached,
    sectionNames: portNames,
    gateways: reached,
  },
  GatewayBackend: {
    group: ownGroup,
    sections: ['backend'],
    part: 'provider or target',
    unattached: unreached,
    sectionNames: subBackendNames,
    gateways: reached,
  },
  InferencePool: {
    group: inferenceGroup,
    sections: ['backend'],
    part: 'section',
    unattached: unreached,
    sectionNames: () => [],
    gateways: reached,
  },
}

/** Takes requests before a backend is chosen, where they can be told apart. */
const takesTraffic = (kind: string) => targetKinds[kind]?.sections.includes('traffic') === true

/** Connections are forwarded unread from there as well. */
const takesStreams = (kind: string) => kind === 'Gateway' || kind === 'ListenerSet'

interface ClosingField {
  readonly section: PolicySection
  readonly field: string
}

/**
 * Fields that close everything a target covers when they cannot be enforced: authorization, which
 * nothing overrides, for requests; the fields of backends for what lies behind.
 *
 * @param broken fields of backends that are to be closed beside the credentials
 */
export function closingFields(kind: string, broken: readonly string[]): readonly ClosingField[] {
  const ofRequests = { section: 'traffic', field: 'authorization' } as const
  if (takesTraffic(kind) && !takesStreams(kind)) return [ofRequests]
  const ofBackends = [...new Set(['auth', ...broken])].map((field) => ({
    section: 'backend' as const,
    field,
  }))
  return takesTraffic(kind) ? [ofRequests, ...ofBackends] : ofBackends
}

/** The group that a kind of target has; of a refused policy it may be missing, or the mistake. */
export function groupOfTarget(kind: string): string {
  return (Object.hasOwn(targetKinds, kind) ? targetKinds[kind]?.group : undefined) ?? ''
}

/** May this section be set on this target? Undefined where it may. */
export function sectionProblem(section: PolicySection, target: PolicyTarget): string | undefined {
  const kind = Object.hasOwn(targetKinds, target.kind) ? targetKinds[target.kind] : undefined
  if (kind !== undefined && !kind.sections.includes(section)) {
    return `spec.${section} may not target a ${target.kind}`
  }
  if (section === 'frontend' && target.section !== undefined) {
    return 'spec.frontend may target only a whole Gateway, without sectionName'
  }
  return undefined
}

/** Why no policy runs before routing on a kind of target; undefined if it does. */
export function phaseProblem(phase: PolicyPhase, kind: string): string | undefined {
  if (phase !== 'PreRouting' || takesStreams(kind)) return undefined
  return `phase PreRouting needs a Gateway, a listener or a ListenerSet as its target, not a ${kind}`
}

function findTargetKind(group: string, kind: string): TargetKind | undefined {
  const known = Object.hasOwn(targetKinds, kind) ? targetKinds[kind] : undefined
  return known?.group === group ? known : undefined
}

const noTarget = (group: string, kind: string) => `${kind} of group "${group}" cannot be targeted`

/** Why policies can never be attached to what a reference names; undefined for kinds that take them. */
export function targetKindProblem({ group, kind }: Pick<PolicyTargetReference, 'group' | 'kind'>) {
  return findTargetKind(group, kind) === undefined ? noTarget(group, kind) : undefined
}

/** Do the names of its sections depend on objects that may be missing? */
function hasOpenSections({ ref, object }: ObjectState, read: Reader): boolean {
  if (ref.kind in routeStages) return routeView(ref, read) === undefined
  if (ref.kind !== 'GatewayBackend' || object === undefined) return false
  const { mcp } = specOf<'GatewayBackend'>(object)
  return mcp?.targets?.some(({ selector }) => selector !== undefined) === true
}

function resolveOne(
  reference: PolicyTargetReference,
  namespace: string,
  read: Reader,
): ResolvedTarget {
  const { group, kind, name, sectionName } = reference
  const ref = { kind, namespace, name }
  const target = { ...ref, ...(sectionName !== undefined && { section: sectionName }) }
  const known = findTargetKind(group, kind)
  if (known === undefined) {
    const problem = { message: noTarget(group, kind) }
    return { target, exists: false, gateways: [], problem }
  }
  const state = read.object(kind, namespace, name)
  if (state?.object === undefined) {
    const missing = state === undefined ? 'does not exist' : 'has no valid version'
    const problem = { message: `${kind} ${namespace}/${name} ${missing}`, ...elsewhere }
    return { target, exists: false, gateways: [], problem }
  }
  if (sectionName !== undefined && !known.sectionNames(state, read).includes(sectionName)) {
    const names = [...known.sectionNames(state, read)].sort().join(', ')
    const there = names === '' ? 'it has none with a name' : `it has ${names}`
    const message = `${kind} ${namespace}/${name} has no ${known.part} ${sectionName}; ${there}`
    const problem = { message, ...(hasOpenSections(state, read) && elsewhere) }
    return { target, exists: false, gateways: [], problem }
  }
  const gateways = known.gateways(ref, read)
  const problem =
    gateways.length === 0
      ? { message: `${kind} ${namespace}/${name} ${known.unattached}`, ...elsewhere }
      : undefined
  return { target, exists: true, gateways, problem }
}

/** Why there is nothing to attach to: no such object, or no such section; undefined where there is. */
export function targetProblem(target: PolicyTarget, read: Reader): TargetProblem | undefined {
  const { kind, namespace, name, section } = target
  const group = targetKinds[kind]?.group ?? ''
  const reference = { group, kind, name, ...(section !== undefined && { sectionName: section }) }
  const { exists, problem } = resolveOne(reference, namespace, read)
  return exists ? undefined : problem
}

/** All targets of a policy, selectors evaluated; each target once. */
export function resolveTargets(
  spec: GatewayPolicySpec,
  namespace: string,
  read: Reader,
): readonly ResolvedTarget[] {
  const resolved = (spec.targetRefs ?? []).map((ref) => resolveOne(ref, namespace, read))
  for (const { group, kind, matchLabels, sectionName } of spec.targetSelectors ?? []) {
    const found = read
      .index('labelled', `${kind}/${namespace}`)
      .filter(({ object }) => {
        const labels = object?.metadata.labels ?? {}
        return Object.entries(matchLabels).every(([key, value]) => labels[key] === value)
      })
      .map(({ ref }) =>
        resolveOne(
          { group, kind, name: ref.name, ...(sectionName && { sectionName }) },
          namespace,
          read,
        ),
      )
    resolved.push(...found)
    if (found.length === 0) {
      const target = { kind, namespace, name: '' }
      const problem = { message: `no ${kind} matches the selector`, ...elsewhere }
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

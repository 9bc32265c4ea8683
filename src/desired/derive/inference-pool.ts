/**
 * InferencePools (Gateway API Inference Extension 1.6): where their Pods are, who picks between
 * them, and what of that cannot be had.
 *
 * ```
 *   HTTPRoute ──► InferencePool ──► Service of the picker
 *                      ▲
 *                     Pods that it selects
 * ```
 */
import type { PodFacts } from '../../../events/index.ts'
import type { InferencePoolSpec } from '../../api/inference-pool.ts'
import { inferenceGroup } from '../../api/names.ts'
import { matchesSelector } from '../../base/label-selector.ts'
import type { EndpointPicker, PodResource, PoolResource } from '../../model/inference-pools.ts'
import type { BackendReference } from '../../model/references.ts'
import type { BackendTarget } from '../../model/resources.ts'
import { elsewhere, type Failure } from '../conditions.ts'
import type { Derived, IndexDefinition, Reader, Stage } from '../graph.ts'
import type { ObjectState } from '../object-state.ts'
import { specOf } from '../specs.ts'
import {
  type BackendUse,
  grantProblem,
  invalid,
  type Referrer,
  type ResolvedBackend,
  resolveBackend,
  unmet,
} from './references.ts'

/** Valid pools by namespace, so that Pods find theirs. */
export const inferencePools: IndexDefinition = {
  name: 'inference-pools',
  kinds: ['InferencePool'],
  keys: ({ ref, object }) => (object === undefined ? [] : [ref.namespace]),
}

/** Fact: kinds that the source leaves alone because a setting says so; absent where it has none. */
export const unreadKindsFact = 'unread-kinds'

/** What routes and the pool's own status read of it. */
export interface PoolView {
  readonly appProtocol: string
  /** Why the pool cannot be served, and which of its conditions tells so. */
  readonly problem?: Failure & { readonly condition: 'Accepted' | 'ResolvedRefs' }
}

type Problem = NonNullable<PoolView['problem']>
type PickerRef = NonNullable<InferencePoolSpec['endpointPickerRef']>

const pickerMissing: Problem = {
  condition: 'Accepted',
  reason: 'EndpointPickerRefMissing',
  message:
    'spec.endpointPickerRef is not set, and endpoints of a pool are not chosen without a picker',
}

function findPicker(
  reference: PickerRef,
  namespace: string,
  read: Reader,
): EndpointPicker | Pick<Failure, 'message' | 'own'> {
  const { group = '', kind = 'Service', name, port, failureMode = 'FailClose' } = reference
  if (group !== '' || kind !== 'Service') {
    return { message: `${kind} of group "${group}" is not supported, only a Service is` }
  }
  const service = read.object('Service', namespace, name)?.object
  if (service === undefined) {
    return { message: `Service ${namespace}/${name} does not exist`, ...elsewhere }
  }
  const spec = specOf<'Service'>(service)
  if (spec.type === 'ExternalName') {
    return { message: `Service ${namespace}/${name} is of type ExternalName` }
  }
  const number = port?.number
  if (number === undefined) {
    return { message: `no port of Service ${namespace}/${name} is named` }
  }
  const found = spec.ports?.some(
    (candidate) => candidate.port === number && (candidate.protocol ?? 'TCP') === 'TCP',
  )
  if (found !== true) {
    return { message: `Service ${namespace}/${name} has no TCP port ${number}` }
  }
  return { target: { type: 'service', namespace, name, port: number }, failureMode }
}

function judge(
  { endpointPickerRef }: InferencePoolSpec,
  namespace: string,
  read: Reader,
): EndpointPicker | Problem {
  if (endpointPickerRef === undefined) return pickerMissing
  const picker = findPicker(endpointPickerRef, namespace, read)
  if ('target' in picker) return picker
  const message = `spec.endpointPickerRef: ${picker.message}`
  const { own } = picker
  const reason = 'InvalidExtensionRef'
  return { condition: 'ResolvedRefs', reason, message, ...(own && { own }) }
}

export const inferencePoolStage: Stage = {
  name: 'inference-pool',
  kinds: ['InferencePool'],
  derive(self: ObjectState, read: Reader): Derived {
    if (self.object === undefined) return {}
    const spec = specOf<'InferencePool'>(self.object)
    const { namespace, name } = self.ref
    const { appProtocol = 'http' } = spec
    const found = judge(spec, namespace, read)
    const view: PoolView = { appProtocol, ...('reason' in found && { problem: found }) }
    const resource: PoolResource = {
      type: 'pool',
      key: `pool/${namespace}/${name}`,
      namespace,
      name,
      targetPorts: spec.targetPorts.map(({ number }) => number),
      appProtocol,
      ...('reason' in found ? { unusable: found.message } : { picker: found }),
    }
    return { value: view, resources: [resource] }
  },
}

/** A Pod that pools select; whether it is ready decides about traffic, not about membership. */
export const podStage: Stage = {
  name: 'pod',
  kinds: ['Pod'],
  derive(self: ObjectState, read: Reader): Derived {
    const { namespace, name } = self.ref
    const { address, ready = false } = (self.object?.facts ?? {}) as Partial<PodFacts>
    if (self.object === undefined || address === undefined) return {}
    const labels = self.object.metadata.labels ?? {}
    const pools = read
      .index(inferencePools.name, namespace)
      .filter(({ object }) => {
        const selector = object && specOf<'InferencePool'>(object).selector
        return matchesSelector(selector, labels)
      })
      .map(({ ref }) => ref.name)
    if (pools.length === 0) return {}
    const key = `pod/${namespace}/${name}`
    const pod: PodResource = { type: 'pod', key, namespace, name, pools, address, ready }
    return { resources: [pod] }
  },
}

/** Resolves a backendRef of a route of requests, which may lead to an InferencePool. */
export function resolveRouteBackend(
  reference: BackendReference,
  from: Referrer,
  read: Reader,
  use: BackendUse,
): ResolvedBackend<BackendTarget> {
  const isPool = reference.group === inferenceGroup && reference.kind === 'InferencePool'
  return isPool
    ? resolvePool(reference, from, read, use)
    : resolveBackend(reference, from, read, use)
}

function resolvePool(
  { name, namespace: given }: BackendReference,
  from: Referrer,
  read: Reader,
  use: BackendUse,
): ResolvedBackend<BackendTarget> {
  const namespace = given ?? from.namespace
  const label = `InferencePool ${namespace}/${name}`
  if (read.fact<readonly string[]>(unreadKindsFact)?.includes('InferencePool') === true) {
    const message = `backendRef to ${label}: InferencePools are not read, inferenceExtension.enabled is off`
    return unmet('InvalidKind', message)
  }
  const refused = grantProblem(
    from,
    { group: inferenceGroup, kind: 'InferencePool', namespace, name },
    read,
  )
  if (refused !== undefined) return unmet('RefNotPermitted', refused)
  const ref = { kind: 'InferencePool', namespace, name }
  const view = read.value<PoolView>(inferencePoolStage.name, ref)
  if (view === undefined) {
    const isKnown = read.object('InferencePool', namespace, name) !== undefined
    const missing = isKnown ? 'has no valid version' : 'does not exist'
    return unmet('BackendNotFound', `${label} ${missing}`)
  }
  if (use === 'grpc' && view.appProtocol !== 'kubernetes.io/h2c') {
    const message = `appProtocol ${view.appProtocol} of ${label} cannot carry gRPC`
    return invalid('UnsupportedProtocol', message)
  }
  const { problem } = view
  const message = `${label}: ${problem?.message}`
  // The inference extension's conformance suite: a pool whose picker is not there is not found.
  const failure = problem && { reason: 'BackendNotFound', message, ...elsewhere }
  return { target: { type: 'pool', namespace, name }, failure }
}

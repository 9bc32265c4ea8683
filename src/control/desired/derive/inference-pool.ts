/**
 * InferencePools (Gateway API Inference Extension 1.6): finds their Pods and their endpoint picker, and
 * reports what is missing.
 *
 * ```
 *   HTTPRoute ──► InferencePool ──► Service of the picker
 *                      ▲
 *                     Pods that it selects
 * ```
 */
import type { PodState } from '../../../../events/index.ts'
import type { ResolvedServer } from '../../../gateway/backends/define.ts'
import { inferenceGroup } from '../../../ground/model/api-names.ts'
import type {
  EndpointPicker,
  PodResource,
  PoolResource,
} from '../../../ground/model/inference-pools.ts'
import { matchesSelector } from '../../../ground/model/label-selector.ts'
import type { BackendReference } from '../../../ground/model/references.ts'
import type { BackendTarget } from '../../../ground/model/resources.ts'
import type { InferencePoolSpec } from '../../api/inference-pool.ts'
import { type Failure, notOwn } from '../conditions.ts'
import type { Derived, Reader, Stage } from '../graph.ts'
import type { IndexDefinition } from '../object-indexes.ts'
import type { ObjectState } from '../object-state.ts'
import { specOf } from '../specs.ts'
import {
  type BackendUse,
  grantFailure,
  invalid,
  notFound,
  type Referrer,
  type ResolvedBackend,
  resolveBackend,
  unmet,
} from './references.ts'
import { readService } from './service.ts'

/** Index of valid pools by namespace, to find the pools that select a Pod. */
export const inferencePools: IndexDefinition = {
  name: 'inference-pools',
  kinds: ['InferencePool'],
  keys: ({ ref, object }) => (object === undefined ? [] : [ref.namespace]),
}

/** Name of the input with the kinds that a setting excludes from reading; not set if there are none. */
export const unreadKindsInput = 'unread-kinds'

/** What routes and the pool's own status read about a pool. */
export interface PoolView {
  readonly appProtocol: string
  /** Why the pool cannot be served, and the condition that reports it. */
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
  reference: PickerRef | undefined,
  namespace: string,
  read: Reader,
): EndpointPicker | Problem {
  if (reference === undefined) return pickerMissing
  const { group = '', kind = 'Service', name, port, failureMode = 'FailClose' } = reference
  const label = `Service ${namespace}/${name}`
  const invalidRef = (why: string): Problem => {
    const message = `spec.endpointPickerRef: ${why}`
    return { condition: 'ResolvedRefs', reason: 'InvalidExtensionRef', message }
  }
  if (group !== '' || kind !== 'Service') {
    return invalidRef(`${kind} of group "${group}" is not supported, only a Service is`)
  }
  const service = readService(namespace, name, read)
  if (service === undefined) return { ...invalidRef(`${label} does not exist`), ...notOwn }
  if (service.type === 'ExternalName') return invalidRef(`${label} is of type ExternalName`)
  const number = port?.number
  if (number === undefined) return invalidRef(`no port of ${label} is named`)
  const found = service.ports?.some(
    (candidate) => candidate.port === number && (candidate.protocol ?? 'TCP') === 'TCP',
  )
  if (found !== true) return invalidRef(`${label} has no TCP port ${number}`)
  return { target: { type: 'service', namespace, name, port: number }, failureMode }
}

export const inferencePoolStage: Stage = {
  name: 'inference-pool',
  kinds: ['InferencePool'],
  derive(self: ObjectState, read: Reader): Derived {
    if (self.object === undefined) return {}
    const spec = specOf<'InferencePool'>(self.object)
    const { namespace, name } = self.ref
    const { appProtocol = 'http' } = spec
    const found = findPicker(spec.endpointPickerRef, namespace, read)
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

/** Derives Pods that pools select. A Pod that is not ready belongs to the pool but gets no traffic. */
export const podStage: Stage = {
  name: 'pod',
  kinds: ['Pod'],
  derive(self: ObjectState, read: Reader): Derived {
    const { namespace, name } = self.ref
    const { address, ready = false, serving } = (self.object?.facts ?? {}) as Partial<PodState>
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
    const identity = { type: 'pod', key, namespace, name } as const
    const pod: PodResource = { ...identity, pools, address, ready, ...(serving && { serving }) }
    return { resources: [pod] }
  },
}

/** Resolves a backendRef of an HTTPRoute or GRPCRoute, which may refer to an InferencePool. */
export function resolveRouteBackend(
  reference: BackendReference,
  from: Referrer,
  read: Reader,
  use?: BackendUse,
): ResolvedBackend<BackendTarget> {
  const isPool = reference.group === inferenceGroup && reference.kind === 'InferencePool'
  return isPool
    ? resolvePool(reference, from, read, use)
    : resolveBackend(reference, from, read, use)
}

/**
 * Resolves what serves a model: a Service, or an InferencePool. Requests to a pool that has no endpoint picker are
 * balanced among its endpoints.
 */
export function resolveModelServer(
  reference: BackendReference,
  from: Referrer,
  read: Reader,
): { readonly target: ResolvedServer['target']; readonly failure: Failure | undefined } {
  const { target, failure } = resolveRouteBackend(reference, from, read, 'http')
  const { group = '', name, port = 0 } = reference
  if (group === '' || target.type === 'backend') {
    // A Service that is missing has no endpoints until it comes.
    return { target: { type: 'service', namespace: from.namespace, name, port }, failure }
  }
  if (target.type !== 'pool' || failure === undefined) return { target, failure }
  const ref = { kind: 'InferencePool', namespace: target.namespace, name: target.name }
  const { problem } = read.value<PoolView>(inferencePoolStage.name, ref) ?? {}
  if (problem?.reason === pickerMissing.reason) return { target, failure: undefined }
  const { reason, message } = failure
  return { target: { type: 'invalid', reason, message }, failure }
}

function resolvePool(
  { name, namespace: given }: BackendReference,
  from: Referrer,
  read: Reader,
  use?: BackendUse,
): ResolvedBackend<BackendTarget> {
  const namespace = given ?? from.namespace
  const label = `InferencePool ${namespace}/${name}`
  if (read.input<readonly string[]>(unreadKindsInput)?.includes('InferencePool') === true) {
    const message = `backendRef to ${label}: InferencePools are not read, inferenceExtension.enabled is off`
    return unmet({ reason: 'InvalidKind', message })
  }
  const ref = { kind: 'InferencePool', namespace, name }
  const refused = grantFailure(from, { group: inferenceGroup, ...ref }, read)
  if (refused !== undefined) return unmet(refused)
  const view = read.value<PoolView>(inferencePoolStage.name, ref)
  if (view === undefined) return notFound(label, read.object(ref.kind, namespace, name))
  if (use === 'grpc' && view.appProtocol !== 'kubernetes.io/h2c') {
    const message = `appProtocol ${view.appProtocol} of ${label} cannot carry gRPC`
    return invalid('UnsupportedProtocol', message)
  }
  const { problem } = view
  const message = `${label}: ${problem?.message}`
  // The conformance suite of the inference extension requires BackendNotFound if the picker is missing.
  const failure = problem && { reason: 'BackendNotFound', message, ...notOwn }
  return { target: { type: 'pool', namespace, name }, failure }
}

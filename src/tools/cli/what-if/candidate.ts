/** Derives the candidate state: the events of changed manifests are folded after those of the present state. */
import { isDeepStrictEqual } from 'node:util'
import type { ResourceApplied, ResourceRefused, SluiceEvent } from '../../../../events/index.ts'
import { kinds } from '../../../control/api/kinds.ts'
import type { ObjectState, ObservedObject } from '../../../control/desired/object-state.ts'
import { builtInFile } from '../../../control/watch/claim-book.ts'
import { deletedEvent } from '../../../control/watch/difference.ts'
import { type ObjectKey, objectKey } from '../../../ground/model/names.ts'
import type { DerivationOptions, Fold } from '../../../past/replay/index.ts'
import { createFold } from '../../../past/replay/index.ts'
import type { ComparedStates, ObjectChange } from '../../../past/what-if/states.ts'
import type { Recording } from '../recording/recording.ts'

export interface CandidateState extends Pick<ComparedStates, 'fold' | 'changes'> {
  /** Objects whose secret values cannot be compared. They count as unchanged. */
  readonly assumed: readonly ObjectKey[]
}

interface CandidateOptions {
  /** If true, only the given objects are added or replaced; if false, all others are removed. */
  readonly isOverlay: boolean
  /** If false, digests of secret values cannot be compared, and the values count as unchanged. */
  readonly hasDigests: boolean
  readonly derivation: DerivationOptions
}

/** An event about one version of an object. */
type Observation = ResourceApplied | ResourceRefused

/**
 * Kinds that a cluster has without the manifests of a gateway. A candidate that lacks such an object does not
 * remove it.
 */
const clusterKinds = new Set([
  'GatewayClass',
  ...kinds.flatMap(({ kind, lenient }) => (lenient === true ? [kind] : [])),
])

/** Folds the objects of `manifests` after the present state, which is not changed. */
export function foldCandidate(
  present: Fold,
  manifests: Recording,
  options: CandidateOptions,
): CandidateState {
  // Only the log of a cluster has versions of the Gateway API.
  const isCluster = present.definitions !== undefined
  const given = observationsOf(manifests, !isCluster && !options.isOverlay)
  const changes = new Map<ObjectKey, ObjectChange>()
  const assumed: ObjectKey[] = []
  const fold = createFold(options.derivation, present.snapshot())
  const apply = (key: ObjectKey, change: ObjectChange, event: SluiceEvent) => {
    changes.set(key, change)
    fold.apply({ position: fold.position + 1, event: { ...event, epoch: present.epoch } })
  }
  for (const event of given) {
    const key = objectKey(event.data)
    const before = present.graph.object(key)
    const next = nextVersion(event, before, isCluster)
    if (before === undefined) apply(key, 'added', next)
    else if (!isSame(before, next, options.hasDigests)) apply(key, 'changed', next)
    else if (!options.hasDigests && !isSame(before, next, true)) assumed.push(key)
  }
  const removed = options.isOverlay ? [] : missingFrom(given, present, isCluster)
  for (const state of removed) apply(objectKey(state.ref), 'removed', removalOf(state))
  // A candidate is compared as it will be in force, even if changes are first judged or delivered in steps.
  fold.putInForce(changes.keys())
  return { fold, changes, assumed }
}

function observationsOf({ events }: Recording, withBuiltIns: boolean): Observation[] {
  return events.flatMap(({ event }) => {
    if (!isObservation(event)) return []
    return withBuiltIns || event.data.origin?.file !== builtInFile ? [event] : []
  })
}

/** Returns the objects of the present state that the candidate lacks and removes. */
function missingFrom(
  given: readonly Observation[],
  present: Fold,
  isCluster: boolean,
): ObjectState[] {
  const kept = new Set(given.map(({ data }) => objectKey(data)))
  return [...present.graph.objects()].filter(
    ({ ref }) => !kept.has(objectKey(ref)) && !(isCluster && clusterKinds.has(ref.kind)),
  )
}

const isObservation = (event: SluiceEvent): event is Observation =>
  event.type === 'dev.sluice.resource.applied.v1' || event.type === 'dev.sluice.resource.refused.v1'

/** Returns the event with the identity of the existing object, so that the object keeps its age. */
function nextVersion(
  event: Observation,
  before: ObjectState | undefined,
  isCluster: boolean,
): Observation {
  if (before === undefined) return event
  const { uid, generation, resourceVersion } = before
  const version = { uid, generation: generation + 1, resourceVersion: `${resourceVersion}+` }
  if (event.type === 'dev.sluice.resource.refused.v1') {
    return { ...event, data: { ...event.data, ...version } }
  }
  const object = isCluster ? withServerFields(event.data.object, before.object) : event.data.object
  return { ...event, data: { ...event.data, ...version, object } }
}

/** Fields that the API server sets in the spec of a Service. */
const serviceFields = ['clusterIP', 'clusterIPs', 'ipFamilies', 'ipFamilyPolicy'] as const

/** Adds what the API server keeps if an object is applied again: its age, and the addresses of a Service. */
function withServerFields(
  object: ResourceApplied['data']['object'],
  before: ObservedObject | undefined,
): ResourceApplied['data']['object'] {
  if (before === undefined) return object
  const { creationTimestamp } = before.metadata
  const metadata = {
    ...(object.metadata as object),
    ...(creationTimestamp && { creationTimestamp }),
  }
  if (object.kind !== 'Service') return { ...object, metadata }
  const known = (before.spec ?? {}) as Readonly<Record<string, unknown>>
  const assigned = serviceFields.filter((field) => known[field] !== undefined)
  const spec = {
    ...Object.fromEntries(assigned.map((field) => [field, known[field]])),
    ...(object.spec as object),
  }
  return {
    ...object,
    metadata,
    spec,
    ...(before.status !== undefined && { status: before.status }),
  }
}

function isSame(before: ObjectState, event: Observation, hasDigests: boolean): boolean {
  if (event.type === 'dev.sluice.resource.refused.v1') {
    const { problems, targets = [], appliesTo = [] } = event.data
    const { generation: _, ...refused } = before.refused ?? { generation: 0 }
    return isDeepStrictEqual(refused, { problems, targets, appliesTo })
  }
  if (before.refused !== undefined || before.object === undefined) return false
  const object = event.data.object as ObservedObject
  return isDeepStrictEqual(comparable(before.object, hasDigests), comparable(object, hasDigests))
}

/** Returns the parts of an object that a manifest sets, for comparison. */
function comparable({ metadata, ...fields }: ObservedObject, hasDigests: boolean): unknown {
  const { labels = {}, annotations = {} } = metadata
  const text = JSON.stringify({ ...fields, labels, annotations }, (key, member: unknown) =>
    !hasDigests && fields.kind === 'Secret' && key === 'digest' ? '' : member,
  )
  return JSON.parse(hasDigests ? text : text.replaceAll(/"secret:[0-9a-f]{32}"/g, '"secret:"'))
}

function removalOf({ ref, uid, resourceVersion, generation }: ObjectState): SluiceEvent {
  const context = { source: '/sluice/what-if', time: new Date().toISOString(), epoch: 0 }
  const entry = { ...ref, uid, resourceVersion, generation, isRefused: false }
  return deletedEvent(entry, 'watch', context)
}

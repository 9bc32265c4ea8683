/** Computes the events that record the observed changes of a cluster. */
import type { EventContext, ResourceEvent } from '../../../../events/index.ts'
import { deletedEvent, parseVersion, upsertEvent } from '../difference.ts'
import { rankOf } from '../kind-order.ts'
import { type IndexEntry, keyOf, type ResourceIndex } from '../resource-index.ts'
import type { CollectionEntry } from './collection.ts'
import { type ClusterClaim, isNewer } from './observe.ts'

interface ClusterChange {
  readonly claims: readonly ClusterClaim[]
  readonly gone: readonly IndexEntry[]
  readonly cause: 'watch' | 'relist'
}

/**
 * Returns the events that make the index equal to the cluster. Objects that the log has already, and changes
 * of status or bookkeeping metadata, cause no event. Pure: the same index and change give the same events and
 * ids, so an append can be repeated.
 */
export function clusterDifferences(
  index: ResourceIndex,
  { claims, gone, cause }: ClusterChange,
  context: EventContext,
): ResourceEvent[] {
  const deleted = [...gone]
    .sort((a, b) => rankOf(b.kind) - rankOf(a.kind))
    .map((entry) => deletedEvent(entry, cause, context))
  const changed = [...claims]
    .sort((a, b) => rankOf(a.name.kind) - rankOf(b.name.kind))
    .flatMap((claim) => eventsOf(index, claim, cause, context))
  return [...changed, ...deleted]
}

/**
 * Returns the kinds of which a watch may know less than the log: an object is older than in the log, or only
 * one of both has it. A new leader lists these kinds before it appends, since its watch may lag behind that
 * of the last leader. Without that, it would undo changes until its watch has caught up.
 */
export function kindsInDoubt(
  index: ResourceIndex,
  observed: Iterable<CollectionEntry>,
  isRelevant: (entry: CollectionEntry) => boolean,
): ReadonlySet<string> {
  const kinds = new Set<string>()
  const entries = new Map<string, CollectionEntry>()
  for (const entry of observed) {
    entries.set(entry.key, entry)
    if (index.get(entry.key) === undefined && isRelevant(entry)) kinds.add(entry.kind.kind)
  }
  for (const known of index.entries()) {
    const entry = entries.get(keyOf(known))
    const { revision } = parseVersion(known.resourceVersion)
    const isCurrent = entry?.uid === known.uid && !isNewer(String(revision), entry.revision)
    if (!isCurrent) kinds.add(known.kind)
  }
  return kinds
}

function eventsOf(
  index: ResourceIndex,
  claim: ClusterClaim,
  cause: 'watch' | 'relist',
  context: EventContext,
): ResourceEvent[] {
  const { uid, content } = claim
  const before = index.get(claim.key)
  if (before === undefined || before.uid !== uid) {
    // If the log has another uid, the object was deleted and created again while nothing was observed.
    const end = before === undefined ? [] : [deletedEvent(before, cause, context)]
    return [...end, upsertEvent(firstVersionOf(claim, index.incarnations + 1), claim, context)]
  }
  const known = parseVersion(before.resourceVersion)
  // A watch may repeat an older version. A listing is authoritative, even if versions went back.
  if (cause === 'watch' && isNewer(String(known.revision), claim.revision)) return []
  // A change that was undone while nothing was observed leaves a new generation, which statuses name.
  const isSameGeneration = claim.generation === undefined || before.generation === claim.generation
  const isKnown =
    isSameGeneration &&
    before.isRefused === (content.state === 'refused') &&
    known.spec === content.version.spec &&
    known.metadata === content.version.metadata
  // `programmed` is omitted for an object in the log, which has the later acknowledgements of proxies.
  const { programmed: _, ...observed } = claim
  return isKnown ? [] : [upsertEvent(versionOf(before, claim), observed, context)]
}

/**
 * The first version of an object in the log. An object may become relevant again without a change of its own.
 * The incarnation makes its version new, so the log does not take the event for a repetition.
 */
function firstVersionOf(claim: ClusterClaim, incarnation: number) {
  const version = versionOf(undefined, claim)
  return { ...version, resourceVersion: `${version.resourceVersion}-${incarnation}` }
}

/** Its version is `<resourceVersion>-<digest of the desired part>-<digest of the metadata>`. */
function versionOf(
  before: IndexEntry | undefined,
  { uid, revision, generation, content }: ClusterClaim,
) {
  const { spec, metadata } = content.version
  const rise = before !== undefined && parseVersion(before.resourceVersion).spec === spec ? 0 : 1
  return {
    uid,
    resourceVersion: `${revision}-${spec}-${metadata}`,
    generation: generation ?? (before?.generation ?? 0) + rise,
  }
}

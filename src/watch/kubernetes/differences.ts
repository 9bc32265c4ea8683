/** What must be appended so that the log knows of a cluster what the watches have seen. */
import type { ResourceEvent } from '../../../events/index.ts'
import { deletedEvent, parseVersion, upsertEvent, type WriterContext } from '../difference.ts'
import type { IndexEntry, ResourceIndex } from '../resource-index.ts'
import { rankOf } from './kinds.ts'
import { type ClusterClaim, isNewer } from './observe.ts'

interface ClusterChange {
  readonly claims: readonly ClusterClaim[]
  readonly gone: readonly IndexEntry[]
  readonly cause: 'watch' | 'relist'
}

/**
 * The events that make the index equal to the cluster: none for what the log knows, nor for changes
 * of status and bookkeeping. Pure: the same index and change give the same events and ids, so that
 * an append whose answer was lost can be repeated.
 */
export function clusterDifferences(
  index: ResourceIndex,
  { claims, gone, cause }: ClusterChange,
  context: WriterContext,
): ResourceEvent[] {
  const deleted = [...gone]
    .sort((a, b) => rankOf(b.kind) - rankOf(a.kind))
    .map((entry) => deletedEvent(entry, cause, context))
  const changed = [...claims]
    .sort((a, b) => rankOf(a.name.kind) - rankOf(b.name.kind))
    .flatMap((claim) => eventsOf(index, claim, cause, context))
  return [...changed, ...deleted]
}

function eventsOf(
  index: ResourceIndex,
  claim: ClusterClaim,
  cause: 'watch' | 'relist',
  context: WriterContext,
): ResourceEvent[] {
  const { uid, content } = claim
  const before = index.get(claim.key)
  if (before === undefined || before.uid !== uid) {
    // It was deleted and made again while nobody looked.
    const end = before === undefined ? [] : [deletedEvent(before, cause, context)]
    return [...end, upsertEvent(firstVersionOf(claim, index.incarnations + 1), claim, context)]
  }
  const known = parseVersion(before.resourceVersion)
  // A watch may repeat itself or come late. A listing is the truth, even where versions went back.
  if (cause === 'watch' && isNewer(String(known.revision), claim.revision)) return []
  const isKnown =
    before.isRefused === (content.state === 'refused') &&
    known.spec === content.version.spec &&
    known.metadata === content.version.metadata
  // Of what the log knows, the log knows better what proxies have in force.
  const { programmed: _, ...said } = claim
  return isKnown ? [] : [upsertEvent(versionOf(before, claim), said, context)]
}

/**
 * An object may count, not count and count again without any change of its own. The number makes
 * that a version of its own, which the log must not take for a repetition.
 */
function firstVersionOf(claim: ClusterClaim, incarnation: number) {
  const version = versionOf(undefined, claim)
  return { ...version, resourceVersion: `${version.resourceVersion}-${incarnation}` }
}

/** `<resourceVersion>-<digest of the desired part>-<digest of the metadata>`. */
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

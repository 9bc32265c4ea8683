import {
  type CloudEvent,
  createEvent,
  type EventContext,
  type EventDefinition,
  messageId,
  type Origin,
  type RelistStartedData,
  type ResourceEvent,
  type ResourceName,
  relistFinished,
  relistStarted,
  resourceApplied,
  resourceDeleted,
  resourceRefused,
  type WasProgrammed,
} from '../../../events/index.ts'
import { hexDigest } from '../../ground/base/digest.ts'
import { subjectOf } from '../log/index.ts'
import { rankOf } from './kind-order.ts'
import type { ContentVersion, ObjectClaim, ObservedContent } from './observed.ts'
import { type IndexEntry, ResourceIndex, summarise } from './resource-index.ts'

/** A change of a source: claims to record, and objects that are gone. */
export interface SourceChange {
  readonly claims: readonly ObjectClaim[]
  readonly gone: readonly IndexEntry[]
  readonly cause: 'watch' | 'relist'
}

/**
 * Returns the events that make the index equal to the sources. Objects that the log has already cause no
 * event. Pure: the same index and change give the same events with the same ids, so an append can be
 * repeated.
 */
export function differences(
  index: ResourceIndex,
  { claims, gone, cause }: SourceChange,
  context: EventContext,
): ResourceEvent[] {
  let incarnations = index.incarnations
  const upserts: { readonly rank: number; readonly event: ResourceEvent }[] = []
  for (const claim of claims) {
    const before = index.get(claim.key)
    const { content } = claim
    if (content.state === 'retained' || isKnown(before, claim, content)) continue
    const uid = before?.uid ?? uidOf(claim.name, ++incarnations)
    const version = { ...nextVersion(before, content.version), uid }
    const event = upsertEvent(version, { ...claim, content }, context)
    upserts.push({ rank: rankOf(claim.name.kind), event })
  }
  // Uids follow the order of the files, and events that of the kinds.
  const ordered = upserts.sort((a, b) => a.rank - b.rank).map(({ event }) => event)
  return [...ordered, ...gone.map((entry) => deletedEvent(entry, cause, context))]
}

/** The source of a complete listing, with the data of its RelistStarted event. */
export interface CompleteListing extends RelistStartedData {
  readonly source: 'files' | 'kubernetes'
}

/** Puts the events of a complete listing between a RelistStarted and a RelistFinished event. */
export function asRelist(
  index: ResourceIndex,
  events: readonly ResourceEvent[],
  listing: CompleteListing,
  context: EventContext,
): ResourceEvent[] {
  const { source } = listing
  const after = new ResourceIndex(index.source, index.toState())
  after.applyAll(events)
  const resourceVersion = String(index.relists + 1)
  const about = { kind: 'Relist', namespace: '', name: source, uid: source, resourceVersion }
  const summary = { source, ...summarise(after.entries()) }
  return [
    eventOf(relistStarted, about, listing, context),
    ...events,
    eventOf(relistFinished, about, summary, context),
  ]
}

interface ObjectVersion {
  readonly uid: string
  readonly resourceVersion: string
  readonly generation: number
}

function isKnown(
  before: IndexEntry | undefined,
  claim: ObjectClaim,
  content: ObservedContent,
): boolean {
  if (before === undefined || before.isRefused !== (content.state === 'refused')) return false
  const { spec, metadata } = parseVersion(before.resourceVersion)
  // The recorded file must be the same too, since the objects of a file that breaks later are found by it.
  const isSameFile = before.origin?.file === claim.origin.file
  return isSameFile && spec === content.version.spec && metadata === content.version.metadata
}

/**
 * Returns the next version. Its `resourceVersion` is `<revision>-<digest of the desired part>-<digest of the
 * metadata>`; the revision distinguishes a return to earlier content from a repeated event.
 */
function nextVersion(
  before: IndexEntry | undefined,
  content: ContentVersion,
): Omit<ObjectVersion, 'uid'> {
  const known = before === undefined ? undefined : parseVersion(before.resourceVersion)
  const resourceVersion = `${(known?.revision ?? 0) + 1}-${content.spec}-${content.metadata}`
  const rise = known?.spec === content.spec ? 0 : 1
  return { resourceVersion, generation: (before?.generation ?? 0) + rise }
}

export function parseVersion(text: string): ContentVersion & { revision: number } {
  const [revision = '0', spec = '', metadata = ''] = text.split('-')
  return { revision: Number(revision), spec, metadata }
}

/** Derives a uid that is the same on every machine for the same incarnation of an object. */
function uidOf({ kind, namespace, name }: ResourceName, incarnation: number): string {
  const text = JSON.stringify([kind, namespace, name, incarnation])
  const hex = hexDigest('sha256', text)
  // UUID version 8 (RFC 9562), whose other bits the application may define.
  const groups = [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `8${hex.slice(13, 16)}`,
    `8${hex.slice(17, 20)}`,
  ]
  return [...groups, hex.slice(20, 32)].join('-')
}

/** A version of an object as a source has observed it. */
interface Observation {
  readonly name: ResourceName
  readonly origin?: Origin
  readonly programmed?: WasProgrammed
  readonly content: ObservedContent
}

/** The event about a version of an object, valid or refused. */
export function upsertEvent(
  version: ObjectVersion,
  { name, origin, programmed, content }: Observation,
  context: EventContext,
): ResourceEvent {
  const identity = { ...name, ...version, ...(origin && { origin }) }
  if (content.state === 'valid') {
    const data = { ...identity, object: content.object, ...(programmed && { programmed }) }
    return eventOf(resourceApplied, identity, data, context)
  }
  const { problems, targets, appliesTo } = content
  const data = {
    ...identity,
    problems: problems.map(({ path, message }) => ({ path, message })),
    ...(targets.length > 0 && { targets }),
    ...(appliesTo.length > 0 && { appliesTo }),
  }
  return eventOf(resourceRefused, identity, data, context)
}

export function deletedEvent(
  { kind, namespace, name, uid, resourceVersion }: IndexEntry,
  cause: 'watch' | 'relist',
  context: EventContext,
): ResourceEvent {
  const data = { kind, namespace, name, uid, resourceVersion, cause }
  return eventOf(resourceDeleted, data, data, context)
}

function eventOf<Type extends string, Data>(
  definition: EventDefinition<Type, Data>,
  about: ResourceName & { readonly uid: string; readonly resourceVersion: string },
  data: Data,
  context: EventContext,
): CloudEvent<Type, Data> {
  const { uid, resourceVersion } = about
  const id = messageId(context.epoch, uid, resourceVersion, definition.type)
  return createEvent(definition, context, { id, subject: subjectOf(about), data })
}

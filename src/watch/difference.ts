import { createHash } from 'node:crypto'
import {
  createEvent,
  type EventContext,
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
} from '../../events/index.ts'
import { subjectOf } from '../log/index.ts'
import type { Claim, ContentVersion, ObservedContent } from './observed.ts'
import { type IndexEntry, ResourceIndex, summarise } from './resource-index.ts'

/** Who writes the events, and when. */
export interface WriterContext extends EventContext {
  readonly cluster: string
}

/** What is to change: objects as their claims have them, and objects that are gone. */
export interface Change {
  readonly claims: readonly Claim[]
  readonly gone: readonly IndexEntry[]
  readonly cause: 'watch' | 'relist'
}

/**
 * The events that make the index equal to the sources: none for what the log knows already. Pure;
 * the same index and change give the same events with the same ids, so that an append whose answer
 * was lost can be repeated.
 */
export function differences(
  index: ResourceIndex,
  { claims, gone, cause }: Change,
  context: WriterContext,
): ResourceEvent[] {
  let incarnations = index.incarnations
  const events: ResourceEvent[] = []
  for (const claim of claims) {
    const before = index.get(claim.key)
    const { content } = claim
    if (content.state === 'retained' || isKnown(before, claim, content)) continue
    const uid = before?.uid ?? uidOf(claim.name, ++incarnations)
    events.push(
      upsertEvent({ ...nextVersion(before, content.version), uid }, { ...claim, content }, context),
    )
  }
  for (const entry of gone) events.push(deletedEvent(entry, cause, context))
  return events
}

/** What is listed, by whom. */
export interface Listing extends RelistStartedData {
  readonly source: 'files' | 'kubernetes'
}

/** The events of a complete listing between its two marks. */
export function asRelist(
  index: ResourceIndex,
  events: readonly ResourceEvent[],
  listing: Listing,
  context: WriterContext,
): ResourceEvent[] {
  const { source } = listing
  const after = new ResourceIndex(index.source, index.toState())
  after.applyAll(events)
  const number = String(index.relists + 1)
  const name = { kind: 'Relist', namespace: '', name: source }
  const mark = (type: string) =>
    addressOf({ ...name, uid: source, resourceVersion: number }, type, context)
  const started = { ...mark(relistStarted.type), data: listing }
  const summary = { source, ...summarise(after.entries()) }
  const finished = { ...mark(relistFinished.type), data: summary }
  return [
    createEvent(relistStarted, context, started),
    ...events,
    createEvent(relistFinished, context, finished),
  ]
}

interface ObjectVersion {
  readonly uid: string
  readonly resourceVersion: string
  readonly generation: number
}

function isKnown(before: IndexEntry | undefined, claim: Claim, content: ObservedContent): boolean {
  if (before === undefined || before.isRefused !== (content.state === 'refused')) return false
  const { spec, metadata } = parseVersion(before.resourceVersion)
  // The file counts, since a file that breaks later keeps the objects that came from it.
  const isSameFile = before.origin?.file === claim.origin.file
  return isSameFile && spec === content.version.spec && metadata === content.version.metadata
}

/**
 * `<revision>-<digest of the desired part>-<digest of the metadata>`. The revision makes a version
 * that returns to an earlier content a new one, which the log must not take for a repetition.
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

/** The same for the same incarnation of an object, on every machine. */
function uidOf({ kind, namespace, name }: ResourceName, incarnation: number): string {
  const text = JSON.stringify([kind, namespace, name, incarnation])
  const hex = createHash('sha256').update(text).digest('hex')
  // UUID version 8 (RFC 9562): the bits are ours to define.
  const groups = [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `8${hex.slice(13, 16)}`,
    `8${hex.slice(17, 20)}`,
  ]
  return [...groups, hex.slice(20, 32)].join('-')
}

/** A version of an object, as a source has seen it. */
interface Seen {
  readonly name: ResourceName
  readonly origin?: Origin
  readonly programmed?: WasProgrammed
  readonly content: ObservedContent
}

/** What is recorded of a version of an object, valid or refused. */
export function upsertEvent(
  version: ObjectVersion,
  { name, origin, programmed, content }: Seen,
  context: WriterContext,
): ResourceEvent {
  const identity = { ...name, ...version, ...(origin && { origin }) }
  if (content.state === 'valid') {
    const address = addressOf({ ...name, ...version }, resourceApplied.type, context)
    const believed = programmed !== undefined && { programmed }
    const data = { ...identity, object: content.object, ...believed }
    return createEvent(resourceApplied, context, { ...address, data })
  }
  const { problems, targets, appliesTo } = content
  const address = addressOf({ ...name, ...version }, resourceRefused.type, context)
  const data = {
    ...identity,
    problems: problems.map(({ path, message }) => ({ path, message })),
    ...(targets.length > 0 && { targets }),
    ...(appliesTo.length > 0 && { appliesTo }),
  }
  return createEvent(resourceRefused, context, { ...address, data })
}

export function deletedEvent(
  { kind, namespace, name, uid, resourceVersion }: IndexEntry,
  cause: 'watch' | 'relist',
  context: WriterContext,
): ResourceEvent {
  const data = { kind, namespace, name, uid, resourceVersion, cause }
  const address = addressOf(data, resourceDeleted.type, context)
  return createEvent(resourceDeleted, context, { ...address, data })
}

function addressOf(
  about: ResourceName & { readonly uid: string; readonly resourceVersion: string },
  type: string,
  { epoch, cluster }: WriterContext,
): { readonly id: string; readonly subject: string } {
  const { kind, namespace, name, uid, resourceVersion } = about
  return {
    id: messageId(epoch, uid, resourceVersion, type),
    subject: subjectOf({ cluster, kind, namespace, name }),
  }
}

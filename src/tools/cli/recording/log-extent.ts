/** How much of its history a log still has, and whether a stored state replaces the missing part. */

import { exportBeginning, joinSnapshot } from '../../../control/log/export.ts'
import type { EventLog, Position, SnapshotInfo } from '../../../control/log/index.ts'
import { loadState } from '../../../control/plane/stored-state.ts'
import { type FoldSnapshot, foldVersion } from '../../../past/replay/index.ts'

/**
 * - `whole`: every event since the beginning is there.
 * - `stored`: earlier events are gone; a state stored next to the log replaces them.
 * - `partial`: earlier events are gone, and nothing replaces them.
 */
type ExtentState = 'whole' | 'stored' | 'partial'

export interface LogExtent {
  readonly state: ExtentState
  /** Position of the first event, or of the next one if the log is empty. */
  readonly first: number
  /** The stored state to begin with, if any. Events up to its position need not be read. */
  readonly base?: FoldSnapshot
  /** False if another fold version made `base`, so that digests computed from it cannot be compared. */
  readonly isSameFoldVersion: boolean
  /** Set if `base` comes from an export that leaves out credentials. */
  readonly isRedacted?: boolean
  /** Messages for the user; empty if the log is whole. */
  readonly notices: readonly string[]
}

/** Which stored state to begin with: the nearest one, or the oldest, so that most events are read. */
export type Start = 'nearest' | 'oldest'

const missing =
  'objects that have not changed since are missing here; a controller or gateway lists everything again and adds what the log lacks'

/** The extent of events that have no stored state, from the position of the first one. */
export function extentOf(first = 1): LogExtent {
  if (first <= 1) return { state: 'whole', first, isSameFoldVersion: true, notices: [] }
  const notice = `the log begins at position ${first}: earlier events were purged, and no stored state replaces them; ${missing}`
  return { state: 'partial', first, isSameFoldVersion: true, notices: [notice] }
}

/** The extent of a log that is read up to position `upTo`; states stored after that position are not used. */
export async function extentOfLog(log: EventLog, upTo: number, start: Start): Promise<LogExtent> {
  const lost = await log.lostUpTo()
  const first = await log.firstPosition()
  const stored = await log.snapshots()
  const usable = stored.filter(
    ({ position }) => position <= upTo && position + 1 >= first && position >= lost,
  )
  const candidates = start === 'nearest' ? usable.toReversed() : usable
  const own = candidates.filter((one) => one.foldVersion === foldVersion)
  const notices: string[] = []
  const load = (list: readonly SnapshotInfo[]) =>
    loadState(log, list, (message) => notices.push(`${message}; using another one`))
  if (first === 1 && lost === 0) {
    const base = start === 'nearest' ? (await load(own))?.fold : undefined
    if (start === 'nearest' && base === undefined && usable.length > 0) {
      notices.push(
        `no usable snapshot is of fold version ${foldVersion}: all events are folded, which takes longer`,
      )
    }
    return { state: 'whole', first, isSameFoldVersion: true, notices, ...(base && { base }) }
  }
  const begin = Number.isFinite(lost) ? `begins at position ${first}` : 'was emptied'
  const why = lost > 0 ? 'events were removed externally' : 'earlier events were purged'
  const snapshot = (await load(own)) ?? (await load(candidates))
  if (snapshot !== undefined) return storedExtent(first, snapshot, `${begin}: ${why}`, notices)
  const newest = stored.at(-1)
  const state =
    newest === undefined
      ? 'no state is stored'
      : `the state stored at position ${newest.position} does not replace them`
  notices.push(`the log ${begin}: ${why}, and ${state}; ${missing}`)
  return { state: 'partial', first, isSameFoldVersion: true, notices }
}

/** The extent of a log that begins with a stored state. `why` says what is missing before. */
function storedExtent(
  first: number,
  snapshot: NonNullable<Awaited<ReturnType<typeof loadState>>>,
  why: string,
  notices: readonly string[],
): LogExtent {
  const isSameFoldVersion = snapshot.foldVersion === foldVersion
  const by = isSameFoldVersion ? '' : ` by fold version ${snapshot.foldVersion}`
  const start = `the log ${why}; starting from the state stored at position ${snapshot.position}${by}`
  return {
    state: 'stored',
    first,
    base: snapshot.fold,
    isSameFoldVersion,
    notices: [...notices, start],
  }
}

/**
 * The extent of an export. One of a purged log may have the stored state that replaces earlier events; whether
 * that state is from before a time is unknown.
 */
export async function extentOfExport(
  path: string,
  limit: { readonly position: number; readonly timeMs?: number },
): Promise<LogExtent> {
  const { first, parts } = await exportBeginning(path)
  const [part] = parts
  if (first === undefined || part === undefined) return extentOf(first)
  if (part.position > limit.position || limit.timeMs !== undefined) return extentOf(first)
  const notices: string[] = []
  const source = { loadSnapshot: () => joinSnapshot(parts) }
  const info = { position: part.position as Position, foldVersion: part.foldVersion, bytes: 0 }
  const snapshot = await loadState(source, [info], (message) => notices.push(message))
  if (snapshot === undefined || snapshot.position + 1 < first) {
    const extent = extentOf(first)
    return { ...extent, notices: [...notices, ...extent.notices] }
  }
  const why = `begins at position ${first}: earlier events were purged`
  const isRedacted = part.redacted === true
  return { ...storedExtent(first, snapshot, why, notices), isRedacted }
}

/** How much of its history a log still has, and whether a stored state replaces the missing part. */
import { loadState } from '../control-plane/stored-state.ts'
import type { EventLog, Position } from '../log/index.ts'
import { type FoldSnapshot, foldVersion } from '../replay/index.ts'

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
  /** The stored state that replaces missing events, if any. */
  readonly base?: FoldSnapshot
  /** False if another fold version made `base`, so that digests computed from it cannot be compared. */
  readonly isSameFoldVersion: boolean
  /** Message for the user; not set if the log is whole. */
  readonly notice?: string
}

const missing =
  'objects that have not changed since are missing here; a controller or gateway lists everything again and adds what the log lacks'

/** The extent of events that have no stored state, from the position of the first one. */
export function extentOf(first = 1): LogExtent {
  if (first <= 1) return { state: 'whole', first, isSameFoldVersion: true }
  const notice = `the log begins at position ${first}: earlier events were purged, and no stored state replaces them; ${missing}`
  return { state: 'partial', first, isSameFoldVersion: true, notice }
}

/** The extent of a log that is read up to position `upTo`; states stored after that position are not used. */
export async function extentOfLog(log: EventLog, upTo: number): Promise<LogExtent> {
  const lost = await log.lostUpTo()
  const first = await log.firstPosition()
  if (first === 1 && lost === 0) return extentOf(first)
  const begin = Number.isFinite(lost) ? `begins at position ${first}` : 'was emptied'
  const why = lost > 0 ? 'events were removed externally' : 'earlier events were purged'
  const atMost = Math.min(upTo, await log.lastPosition()) as Position
  const snapshot =
    (await loadState(log, { atMost, foldVersion })) ?? (await loadState(log, { atMost }))
  const isUsable =
    snapshot !== undefined && snapshot.position + 1 >= first && snapshot.position >= lost
  if (!isUsable) {
    const stored =
      snapshot === undefined
        ? 'no state is stored'
        : `the state stored at position ${snapshot.position} does not replace them`
    const notice = `the log ${begin}: ${why}, and ${stored}; ${missing}`
    return { state: 'partial', first, isSameFoldVersion: true, notice }
  }
  const isSameFoldVersion = snapshot.foldVersion === foldVersion
  const by = isSameFoldVersion ? '' : ` by fold version ${snapshot.foldVersion}`
  const notice = `the log ${begin}: ${why}; starting from the state stored at position ${snapshot.position}${by}`
  return { state: 'stored', first, base: snapshot.fold, isSameFoldVersion, notice }
}

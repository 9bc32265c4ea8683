/** How much of its history a log still has, and what stands in for the rest. */
import { storedFold } from '../control-plane/stored-state.ts'
import type { EventLog } from '../log/index.ts'
import { type FoldSnapshot, foldVersion } from '../replay/index.ts'

/**
 * - `whole`: every event from the first on.
 * - `stored`: the beginning was purged, and the state that is stored beside the log stands in for it.
 * - `partial`: the beginning is gone, and nothing stands in for it.
 */
type ExtentState = 'whole' | 'stored' | 'partial'

export interface LogExtent {
  readonly state: ExtentState
  /** Position of the first event that is there; 1 where there is none. */
  readonly first: number
  /** The state to begin with, as of its position. */
  readonly base?: FoldSnapshot
  /** Did this version of the fold make the base, or is there none? Else its digests prove nothing. */
  readonly isOwn: boolean
  /** What to tell of it; absent where the log is whole. */
  readonly notice?: string
}

const relisted =
  'a controller or gateway that runs lists everything again and writes into the log what it lacks'

/** Of events that come without the log that they were in, by the position of the first. */
export function extentOf(first = 1): LogExtent {
  if (first <= 1) return { state: 'whole', first, isOwn: true }
  const notice = `the log begins at position ${first}: what came before was purged, and no stored state stands in for it, so objects that have not changed since are missing here; ${relisted}`
  return { state: 'partial', first, isOwn: true, notice }
}

/** Of a log; `upTo` is the last position that is asked for, and a later state is of no use to it. */
export async function extentOfLog(log: EventLog, upTo: number): Promise<LogExtent> {
  const lost = await log.lostUpTo()
  const first = (await firstOf(log)) ?? (await log.lastPosition()) + 1
  if (first === 1 && lost === 0) return { state: 'whole', first, isOwn: true }
  const who =
    lost > 0
      ? 'somebody has removed what came before, or some of what is between'
      : 'what came before was purged'
  const from = Number.isFinite(lost) ? `begins at position ${first}` : 'was emptied'
  const snapshot = await log.loadSnapshot()
  const isOfUse =
    snapshot !== undefined &&
    snapshot.position + 1 >= first &&
    snapshot.position >= lost &&
    snapshot.position <= upTo
  if (!isOfUse) {
    const stored =
      snapshot === undefined
        ? 'no state is stored'
        : `the stored state, of position ${snapshot.position}, does not stand in for it`
    const notice = `the log ${from}: ${who}, and ${stored}, so objects that have not changed since are missing here; ${relisted}`
    return { state: 'partial', first, isOwn: true, notice }
  }
  const isOwn = snapshot.foldVersion === foldVersion
  const by = isOwn ? '' : ` by fold version ${snapshot.foldVersion}`
  const notice = `the log ${from}: ${who}; the state up to position ${snapshot.position} is the one that was stored${by}`
  return { state: 'stored', first, base: storedFold(snapshot), isOwn, notice }
}

/** Position of the first event that can be read; undefined where there is none. */
async function firstOf(log: EventLog): Promise<number | undefined> {
  for await (const { position } of log.read()) return position
  return undefined
}

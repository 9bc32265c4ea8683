/** Replays a segment of a log: from one snapshot, through others, which must agree, to another. */
import { isDeepStrictEqual } from 'node:util'
import { type EventLog, LogError, type Position } from '../../../control/log/index.ts'
import { hasTextOf, loadState } from '../../../control/plane/stored-state.ts'
import {
  type DerivationOptions,
  type Fold,
  type FoldSnapshot,
  foldVersion,
  type Replay,
  replay,
  segmentOverlap,
} from '../../../past/replay/index.ts'
import type { RecordingOptions } from '../recording/recording.ts'
import { counted } from '../shared/terminal.ts'

export interface SegmentTask {
  /** Position of the snapshot to begin with; not set for the first event. */
  readonly from?: number
  /** Whether another segment ends at that snapshot. */
  readonly isContinued: boolean
  /** Last position to fold. */
  readonly to: number
  /** Positions of the snapshots to compare with. */
  readonly snapshots: readonly number[]
}

/** A task for a thread, which opens the log itself. */
export interface ThreadTask extends SegmentTask {
  readonly at: Pick<RecordingOptions, 'logFile' | 'nats'>
}

/** What a thread sends: how many more events it has read, and at last its result. */
export type ThreadMessage = { readonly read: number } | { readonly result: SegmentResult }

/** The result of a segment, as it is sent between threads. */
export interface SegmentResult extends Omit<Replay, 'fold'> {
  readonly position: number
  readonly digests: ReturnType<Fold['digests']>
  readonly resources: number
  readonly statuses: number
  /** Positions of the snapshots that differ from the fold, or are damaged. */
  readonly wrongSnapshots: readonly number[]
}

export async function replaySegment(
  log: EventLog,
  { from, isContinued, to, snapshots }: SegmentTask,
  derivation: DerivationOptions,
  onRead: (events: number) => void,
): Promise<SegmentResult> {
  const base = from === undefined ? undefined : await load(log, from)
  const wrongSnapshots: number[] = []
  const segment = {
    isContinued,
    end: to,
    stops: snapshots,
    onStop: async (fold: Fold) => {
      if (!(await isEqual(log, fold))) wrongSnapshots.push(fold.position)
    },
  }
  const range = {
    ...(base && { from: (base.position + 1) as Position }),
    to: (to + segmentOverlap) as Position,
  }
  const events = counted(log.read(range), onRead)
  const { fold, ...result } = await replay(events, derivation, base, segment)
  return resultOf(fold, { ...result, wrongSnapshots })
}

/** Reduces a fold to what is reported of it. */
export const resultOf = (
  fold: Fold,
  result: Omit<SegmentResult, 'position' | 'digests' | 'resources' | 'statuses'>,
): SegmentResult => ({
  ...result,
  position: fold.position,
  digests: fold.digests(),
  resources: fold.resources().length,
  statuses: fold.statuses().length,
})

async function load(log: EventLog, position: number): Promise<FoldSnapshot> {
  const stored = (await log.snapshots()).filter((one) => one.position === position)
  const state = await loadState(
    log,
    stored.filter((one) => one.foldVersion === foldVersion),
  )
  if (state !== undefined) return state.fold
  throw new LogError('corrupt', `the snapshot at position ${position} is damaged`)
}

async function isEqual(log: EventLog, fold: Fold): Promise<boolean> {
  const query = { atMost: fold.position as Position, foldVersion }
  const snapshot = await log.loadSnapshot(query).catch(() => undefined)
  if (snapshot?.position !== fold.position) return false
  const state = fold.snapshot()
  // The texts are equal unless the order of objects differs, and comparing them is much faster.
  if (hasTextOf(snapshot, state)) return true
  const stored = await load(log, fold.position).catch(() => undefined)
  if (stored === undefined) return false
  return isDeepStrictEqual(byKey(JSON.parse(JSON.stringify(state)) as FoldSnapshot), byKey(stored))
}

/** The order of objects in a state has no meaning. */
const byKey = ({ actors, statuses, ...state }: FoldSnapshot) => ({
  ...state,
  actors: new Map(actors),
  statuses: new Map(statuses),
})

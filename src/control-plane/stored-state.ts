/** The content of snapshots: the state of the fold, and what the source has listed. */
import { Fold, type FoldSnapshot, foldVersion } from '../actors/fold.ts'
import { createGraph } from '../desired/derivations.ts'
import { beginning, type EventLog, LogError, type Position, type Snapshot } from '../log/index.ts'
import { type IndexState, ResourceIndex } from '../watch/resource-index.ts'
import { regexProblem } from './api-binding.ts'

interface StoredState {
  readonly fold: FoldSnapshot
  readonly index: IndexState
}

export interface RestoredState {
  readonly fold: Fold
  /** What the source has put into the log up to the fold's position. */
  readonly index: ResourceIndex
  /** Position of the next event to read. */
  readonly from: Position
}

/**
 * Restores the log's snapshot if this fold version wrote it. Otherwise returns an empty state that folds the
 * log from its beginning. If the beginning was removed, a snapshot of another fold version is used too: it
 * has all observations, and everything else is derived again.
 * @throws LogError `purged` if events are missing that no snapshot replaces.
 */
export async function restoreState(log: EventLog, source: string): Promise<RestoredState> {
  const snapshot = await log.loadSnapshot()
  const first = await log.firstPosition()
  const lost = await log.lostUpTo()
  const isWhole = first === beginning + 1 && lost === 0
  if (snapshot === undefined || (snapshot.foldVersion !== foldVersion && isWhole)) {
    if (!isWhole) throw new LogError('purged', lossText(first, lost, undefined))
    return { ...emptyState(source), from: (beginning + 1) as Position }
  }
  if (snapshot.position + 1 < first || snapshot.position < lost) {
    throw new LogError('purged', lossText(first, lost, snapshot.position))
  }
  const { fold } = emptyState(source)
  const stored = read(snapshot)
  fold.restore(stored.fold)
  const index = new ResourceIndex(source, stored.index)
  return { fold, index, from: (snapshot.position + 1) as Position }
}

function read({ chunks }: Snapshot): StoredState {
  return JSON.parse(Buffer.concat(chunks).toString('utf8')) as StoredState
}

/** The fold's part of a snapshot. */
export const storedFold = (snapshot: Snapshot): FoldSnapshot => read(snapshot).fold

function emptyState(source: string): Omit<RestoredState, 'from'> {
  const fold = new Fold(createGraph({ checkRegex: regexProblem }))
  return { fold, index: new ResourceIndex(source) }
}

/** Tells operators which part of a log is gone. */
function lossText(first: number, lost: number, stored: number | undefined): string {
  const what = Number.isFinite(lost)
    ? `the log begins at position ${Math.max(first, lost + 1)}`
    : 'the log was emptied'
  const state = stored === undefined ? 'no state is stored' : `the stored state is of ${stored}`
  return `${what} and ${state}: events that are needed were removed externally`
}

/** An empty state at a position, from which everything is listed and observed again. */
export function emptySnapshot(position: Position, source: string): Snapshot {
  const { fold, index } = emptyState(source)
  return snapshotOf({ fold: { ...fold.snapshot(), position }, index: index.toState() })
}

/** Captures the current state; both parts must have applied the same events. */
export function captureState(fold: Fold, index: ResourceIndex): Snapshot {
  return snapshotOf({ fold: fold.snapshot(), index: index.toState() })
}

function snapshotOf(stored: StoredState): Snapshot {
  const chunks = [Buffer.from(JSON.stringify(stored), 'utf8')]
  return { position: stored.fold.position as Position, foldVersion, chunks }
}

/** What a snapshot of a standalone gateway holds: the fold, and what the file source has listed. */
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
  /** What the source named `source` had put into the log up to the fold's position. */
  readonly index: ResourceIndex
  /** Where to read on. */
  readonly from: Position
}

/**
 * The state of the log's snapshot where this fold version wrote it, else an empty one that folds the
 * log from its beginning. Where that is gone, the snapshot of another fold version serves as well:
 * what was seen is in it, and what follows from that is derived anew.
 * @throws LogError `purged` where events are missing that no snapshot stands in for.
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

/** What of a log is gone, in words for operators. */
function lossText(first: number, lost: number, stored: number | undefined): string {
  const what = Number.isFinite(lost)
    ? `the log begins at position ${Math.max(first, lost + 1)}`
    : 'the log was emptied'
  const state = stored === undefined ? 'no state is stored' : `the stored state is of ${stored}`
  return `${what} and ${state}: somebody has removed events that are needed`
}

/** An empty state as of a position: everything is listed and observed again from there. */
export function emptySnapshot(position: Position, source: string): Snapshot {
  const { fold, index } = emptyState(source)
  const stored: StoredState = { fold: { ...fold.snapshot(), position }, index: index.toState() }
  const chunks = [Buffer.from(JSON.stringify(stored), 'utf8')]
  return { position, foldVersion, chunks }
}

/** The state as it is now; both parts must have seen the same events. */
export function captureState(fold: Fold, index: ResourceIndex): Snapshot {
  const stored: StoredState = { fold: fold.snapshot(), index: index.toState() }
  const chunks = [Buffer.from(JSON.stringify(stored), 'utf8')]
  return { position: fold.position as Position, foldVersion, chunks }
}

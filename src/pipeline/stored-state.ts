/** What a snapshot of a standalone gateway holds: the fold, and what the file source has listed. */
import { Fold, type FoldSnapshot, foldVersion } from '../actors/fold.ts'
import { createGraph } from '../desired/derivations.ts'
import { beginning, type EventLog, type Position, type Snapshot } from '../log/index.ts'
import { type IndexState, ResourceIndex } from '../watch/resource-index.ts'
import { regexProblem } from './regex-problem.ts'

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

/** The state of the log's snapshot where this fold version wrote it, else an empty one. */
export async function restoreState(log: EventLog, source: string): Promise<RestoredState> {
  const fold = new Fold(createGraph({ checkRegex: regexProblem }))
  const snapshot = await log.loadSnapshot()
  if (snapshot === undefined || snapshot.foldVersion !== foldVersion) {
    return { fold, index: new ResourceIndex(source), from: (beginning + 1) as Position }
  }
  const text = Buffer.concat(snapshot.chunks).toString('utf8')
  const stored = JSON.parse(text) as StoredState
  fold.restore(stored.fold)
  const index = new ResourceIndex(source, stored.index)
  return { fold, index, from: (snapshot.position + 1) as Position }
}

/** The state as it is now; both parts must have seen the same events. */
export function captureState(fold: Fold, index: ResourceIndex): Snapshot {
  const stored: StoredState = { fold: fold.snapshot(), index: index.toState() }
  const chunks = [Buffer.from(JSON.stringify(stored), 'utf8')]
  return { position: fold.position as Position, foldVersion, chunks }
}

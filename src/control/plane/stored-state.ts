/** The content of snapshots: the state of the fold, and what the source has listed. */
import { setImmediate } from 'node:timers/promises'
import { Fold, type FoldSnapshot, foldVersion } from '../actors/fold.ts'
import { createGraph } from '../desired/derivations.ts'
import {
  beginning,
  type EventLog,
  LogError,
  type LogSnapshot,
  type NewSnapshot,
  type Position,
  type SnapshotInfo,
} from '../log/index.ts'
import { ResourceIndex, type ResourceIndexState } from '../watch/resource-index.ts'
import { regexProblem } from './api-binding.ts'

interface StoredState {
  readonly fold: FoldSnapshot
  readonly index: ResourceIndexState
}

export interface RestoredState {
  readonly fold: Fold
  /** What the source has put into the log up to the fold's position. */
  readonly index: ResourceIndex
  /** Position of the next event to read. */
  readonly from: Position
}

/**
 * Restores the newest snapshot that this fold version wrote. If there is none, returns an empty state that
 * folds the log from its beginning. If the beginning was removed, a snapshot of another fold version is used
 * too: it has all observations, and everything else is derived again. `onDamage` is called for snapshots that cannot be
 * used.
 * @throws LogError `purged` if events are missing that no snapshot replaces.
 */
export async function restoreState(
  log: EventLog,
  source: string,
  onDamage?: (message: string) => void,
): Promise<RestoredState> {
  const first = await log.firstPosition()
  const lost = await log.lostUpTo()
  const isWhole = first === beginning + 1 && lost === 0
  const stored = (await log.snapshots()).toReversed()
  const own = stored.filter((one) => one.foldVersion === foldVersion)
  const snapshot =
    (await loadState(log, own, onDamage)) ??
    (isWhole ? undefined : await loadState(log, stored, onDamage))
  if (snapshot === undefined) {
    if (!isWhole) throw new LogError('purged', lossText(first, lost, undefined))
    return { ...emptyState(source), from: (beginning + 1) as Position }
  }
  if (snapshot.position + 1 < first || snapshot.position < lost) {
    throw new LogError('purged', lossText(first, lost, snapshot.position))
  }
  const { fold } = emptyState(source)
  fold.restore(snapshot.fold)
  const index = new ResourceIndex(source, snapshot.index)
  return { fold, index, from: (snapshot.position + 1) as Position }
}

/** A snapshot with its content. */
interface LoadedState extends StoredState, Pick<LogSnapshot, 'position' | 'foldVersion'> {}

/**
 * Loads the first of several snapshots that is undamaged. It does not matter which one, except for the time
 * that the events after it take.
 */
export async function loadState(
  log: Pick<EventLog, 'loadSnapshot'>,
  candidates: readonly SnapshotInfo[],
  onDamage: (message: string) => void = () => undefined,
): Promise<LoadedState | undefined> {
  for (const { position, foldVersion } of candidates) {
    try {
      const snapshot = await log.loadSnapshot({ atMost: position, foldVersion })
      if (snapshot !== undefined) return { ...snapshot, ...read(snapshot) }
    } catch (error) {
      if (!(error instanceof LogError && error.code === 'corrupt')) throw error
      onDamage(error.message)
    }
  }
  return undefined
}

/** @throws LogError `corrupt` if this is not the state at the position of the snapshot */
function read({ position, chunks }: LogSnapshot): StoredState {
  let stored: Partial<StoredState> | null
  try {
    stored = JSON.parse(Buffer.concat(chunks).toString('utf8'))
  } catch (cause) {
    throw new LogError('corrupt', `the snapshot at position ${position} is damaged`, { cause })
  }
  const { fold } = stored ?? {}
  if (fold?.position === position && Array.isArray(fold.actors)) return stored as StoredState
  throw new LogError(
    'corrupt',
    `the snapshot at position ${position} does not contain the state of that position`,
  )
}

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
export function emptySnapshot(position: Position, source: string): LogSnapshot {
  const { fold, index } = emptyState(source)
  const stored = { fold: { ...fold.snapshot(), position }, index: index.toState() }
  return { position, foldVersion, chunks: [Buffer.from(JSON.stringify(stored))] }
}

/** Maximum number of list entries that are encoded without a pause. */
const entriesAtOnce = 250

/**
 * Captures the current state; both parts must have applied the same events. Only references are copied before
 * this returns, and the state is encoded while it is stored, in slices between other work. Entries never change,
 * so that events may be folded meanwhile.
 */
export function captureState(fold: Fold, index: ResourceIndex): NewSnapshot {
  const stored: StoredState = { fold: fold.snapshot(), index: index.toState() }
  return { position: stored.fold.position as Position, foldVersion, chunks: encode(stored) }
}

async function* encode(stored: StoredState): AsyncGenerator<Uint8Array> {
  for (const text of textsOf(stored)) {
    yield Buffer.from(text)
    await setImmediate()
  }
}

/** Captures the current state and stores it in the log. */
export async function saveState(log: EventLog, fold: Fold, index: ResourceIndex): Promise<void> {
  await log.saveSnapshot(captureState(fold, index))
}

/** Whether a snapshot has exactly the text that would be stored of a fold in this state. */
export function hasTextOf(snapshot: LogSnapshot, fold: FoldSnapshot): boolean {
  const stored = Buffer.concat(snapshot.chunks)
  let at = 0
  for (const text of pieces('{"fold":', membersOf({ ...fold }), ',"index":')) {
    const piece = Buffer.from(text)
    const end = at + piece.length
    if (end > stored.length || stored.compare(piece, 0, piece.length, at, end) !== 0) return false
    at = end
  }
  return true
}

function* pieces(before: string, between: Iterable<string>, after: string): Generator<string> {
  yield before
  yield* between
  yield after
}

/** The JSON text of a state, in pieces. */
function* textsOf({ fold, index }: StoredState): Generator<string> {
  yield '{"fold":'
  yield* membersOf({ ...fold })
  yield ',"index":'
  yield* membersOf({ ...index })
  yield '}'
}

function* membersOf(record: Readonly<Record<string, unknown>>): Generator<string> {
  let before = '{'
  for (const [name, value] of Object.entries(record)) {
    if (value === undefined) continue
    yield `${before}${JSON.stringify(name)}:`
    before = ','
    if (Array.isArray(value)) yield* slicesOf(value)
    else yield JSON.stringify(value)
  }
  yield before === '{' ? '{}' : '}'
}

function* slicesOf(list: readonly unknown[]): Generator<string> {
  let before = '['
  for (let from = 0; from < list.length; from += entriesAtOnce) {
    yield before + JSON.stringify(list.slice(from, from + entriesAtOnce)).slice(1, -1)
    before = ','
  }
  yield before === '[' ? '[]' : ']'
}

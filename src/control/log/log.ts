import type { AnyCloudEvent, SluiceEvent } from '../../../events/index.ts'
import type { Outcome } from '../../ground/base/outcome.ts'

/** Position of an event in the log: 1, 2, 3, ... without gaps, never reused. */
export type Position = number & { readonly __brand: 'Position' }

/** The position before the first event; also the version of a subject that has no event yet. */
export const beginning = 0 as Position

/** An event of the log, upcast to its current version. */
export interface Recorded {
  readonly position: Position
  readonly event: SluiceEvent
  /** Whether it comes from an export that leaves out credentials of the event's object. */
  readonly redacted?: true
}

/**
 * The last position that an appender expects: of the whole log, or of each subject in the map. Other subjects
 * are not checked. A subject whose last event was purged is at `beginning`.
 */
export type ExpectedVersion = Position | ReadonlyMap<string, Position>

/** Why an append stored nothing. Callers must handle both reasons, so they are returned and not thrown. */
export type AppendProblem =
  | {
      readonly reason: 'conflict'
      /** Not set if the version of the whole log was expected. */
      readonly subject?: string
      readonly expected: Position
      readonly actual: Position
      readonly message: string
    }
  | {
      readonly reason: 'too-large'
      readonly id: string
      readonly subject: string
      readonly bytes: number
      readonly limitBytes: number
      readonly message: string
    }

/** The positions of all events of an append, or why nothing was stored. */
export type Appended = Outcome<readonly Position[], AppendProblem>

/** State of a fold at a position. Events up to that position need not be read again. */
export interface LogSnapshot {
  readonly position: Position
  /** The fold version that wrote the snapshot. Others use it only if earlier events are gone. */
  readonly foldVersion: string
  readonly chunks: readonly Uint8Array[]
}

/** A snapshot to store. The log requests its chunks one after the other, so that each can be made when needed. */
export interface NewSnapshot extends Omit<LogSnapshot, 'chunks'> {
  readonly chunks: Iterable<Uint8Array> | AsyncIterable<Uint8Array>
}

/** A stored snapshot without its chunks. */
export interface SnapshotInfo {
  readonly position: Position
  readonly foldVersion: string
  /** Bytes of the chunks as stored. */
  readonly bytes: number
}

/** Which snapshot to load: the newest one that meets all given conditions. */
export interface SnapshotQuery {
  readonly atMost?: Position
  readonly foldVersion?: string
}

/** The first and the last position to read. By default, the first and the last of the log. */
export interface ReadRange {
  readonly from?: Position
  readonly to?: Position
  /** If set, only events of this subject are read. */
  readonly subject?: string
}

/**
 * A contiguous sequence of events: appended in batches, read in order, purged only up to a stored
 * snapshot. Every implementation passes `test/contract/log-contract.ts`.
 *
 * Methods reject with a `LogError` when the storage fails or the log is closed.
 */
export interface EventLog {
  /**
   * Appends all events or none, and resolves once they are durable. An event whose id is in the log
   * is not stored again and keeps its position. A batch whose events are all in the log succeeds
   * whatever version is expected, so that an append can be repeated safely.
   */
  append(
    events: readonly AnyCloudEvent[],
    options?: { readonly expectedVersion?: ExpectedVersion },
  ): Promise<Appended>

  /** Reads events in order. Ends at `to`, or at the event that was last when reading began. */
  read(range?: ReadRange): AsyncIterable<Recorded>

  /**
   * Reads events from a position on, including future ones, in order and without gaps. Ends when the signal
   * is aborted or the log is closed. A slow reader does not delay others.
   */
  tail(from: Position, options?: { readonly signal?: AbortSignal }): AsyncIterable<Recorded>

  /**
   * Position of the last event ever appended; `beginning` if there is none. Tails then continue up to there, also if
   * another process has appended it.
   */
  lastPosition(): Promise<Position>

  /** Position of the oldest event in the log; the next position if it is empty. */
  firstPosition(): Promise<Position>

  /**
   * Position up to which events were removed externally, unless a stored snapshot is known to cover
   * them. Infinity if the position is unknown; 0 if nothing is missing.
   */
  lostUpTo(): Promise<number>

  /**
   * Continues after events were removed externally: stores the state that replaces them, and informs every
   * reader. `stateAt` receives the position of the last event.
   */
  mend(stateAt: (last: Position) => NewSnapshot): Promise<void>

  /**
   * Stores one more snapshot, all of it or nothing; one of the same position is replaced. The log must have
   * reached the position. Older snapshots are removed if all of them together become too large: the older
   * they are, the greater the distance between those that stay.
   */
  saveSnapshot(snapshot: NewSnapshot): Promise<void>

  /** Loads the newest snapshot that meets the query. Rejects with `corrupt` if that one is damaged. */
  loadSnapshot(query?: SnapshotQuery): Promise<LogSnapshot | undefined>

  /** The stored snapshots, in order. */
  snapshots(): Promise<readonly SnapshotInfo[]>

  /**
   * Drops events up to and including a position that a stored snapshot covers, and the snapshots before
   * that position.
   */
  purgeUpTo(position: Position): Promise<void>

  /**
   * Removes the bytes of purged events and snapshots from the storage. Rejects with `storage` if another reader
   * prevents that.
   */
  compact(): Promise<void>

  /** Waits for appends under way and ends every tail. Idempotent. */
  close(): Promise<void>
}

export type LogErrorCode =
  /** The log was closed before or during the call. */
  | 'closed'
  /** The reader asks for events that a snapshot has replaced; load the snapshot first. */
  | 'purged'
  /** No stored snapshot covers the purge, or the position of a snapshot is not valid for the log. */
  | 'no-snapshot'
  /** The file is not a log of Sluice, or is of a newer version; it is left alone. */
  | 'foreign'
  /** The server has no such log, and the caller did not ask to create it. */
  | 'missing'
  /** The file or the stream was damaged or replaced after it was opened; open it again. */
  | 'corrupt'
  /** The disk or the server failed; the same call may succeed later. */
  | 'storage'
  /** No log can be created at the given path; only the user can repair that. */
  | 'unwritable'
  /** The server is too old, or its configuration does not allow a log. */
  | 'unsupported'

/** The log failed, or was used against its contract. */
export class LogError extends Error {
  readonly code: LogErrorCode

  constructor(code: LogErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'LogError'
    this.code = code
  }
}

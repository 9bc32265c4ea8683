import type { AnyCloudEvent, SluiceEvent } from '../../events/index.ts'
import type { Brand } from '../base/brand.ts'
import type { Outcome } from '../base/outcome.ts'

/** Place of an event in the log: 1, 2, 3, ... without holes, never given twice. */
export type Position = Brand<number, 'Position'>

/** The position before the first event; also the version of a subject that has no event yet. */
export const beginning = 0 as Position

/** An event as it stands in the log, lifted to its current version. */
export interface Recorded {
  readonly position: Position
  readonly event: SluiceEvent
}

/**
 * What an appender believes: the last position of the whole log, or of single subjects. A subject
 * that is not in the map is not checked; one whose last event was purged is at the beginning.
 */
export type ExpectedVersion = Position | ReadonlyMap<string, Position>

/** Why an append changed nothing. Both are expected, so both are values and not exceptions. */
export type AppendProblem =
  | {
      readonly reason: 'conflict'
      /** Absent where the version of the whole log was expected. */
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

/** State that a fold had after an event, so that everything up to it need not be read again. */
export interface Snapshot {
  readonly position: Position
  /** A snapshot is of use only to the fold version that wrote it. */
  readonly foldVersion: string
  readonly chunks: readonly Uint8Array[]
}

/** Positions from and to, both included. */
export interface ReadRange {
  readonly from?: Position
  readonly to?: Position
}

/**
 * The one thing that remembers. A log is a single contiguous tail of events: appended in batches,
 * read in order, purged only up to a stored snapshot. Every implementation passes
 * `test/contract/log-contract.ts`.
 *
 * Methods reject with a `LogError` when the storage fails or the log is closed.
 */
export interface EventLog {
  /**
   * Appends all events or none, and resolves once they are durable. An event whose id the log knows
   * is not stored again: its position is the one that it already has. A batch of which every event
   * is known succeeds whatever version is expected, so that an append can be repeated safely.
   */
  append(
    events: readonly AnyCloudEvent[],
    options?: { readonly expectedVersion?: ExpectedVersion },
  ): Promise<Outcome<readonly Position[], AppendProblem>>

  /** Events in order. Ends at `to`, or at the event that is last when the reading begins. */
  read(range?: ReadRange): AsyncIterable<Recorded>

  /** The events of one subject that are still held, in order. */
  readSubject(subject: string, range?: ReadRange): AsyncIterable<Recorded>

  /**
   * Events from a position on, those to come included, in order and without gaps. Ends when the
   * signal is aborted or the log is closed. A slow reader holds up nobody else.
   */
  tail(from: Position, options?: { readonly signal?: AbortSignal }): AsyncIterable<Recorded>

  /** Position of the last event ever appended; `beginning` where there is none. */
  lastPosition(): Promise<Position>

  /** Position of the oldest event that is still held, or the next one to come. */
  firstPosition(): Promise<Position>

  /**
   * Position up to which somebody else has removed events, where no stored snapshot is known to cover
   * them; infinity where not even that can be told, and 0 where nothing is missing.
   */
  lostUpTo(): Promise<number>

  /**
   * Goes on after such a loss: stores the state that stands in for what is gone, and lets every
   * reader know. `stateAt` is given the position of the last event.
   */
  mend(stateAt: (last: Position) => Snapshot): Promise<void>

  /** Stores a snapshot in place of the one before. Its position must have been reached. */
  saveSnapshot(snapshot: Snapshot): Promise<void>

  loadSnapshot(): Promise<Snapshot | undefined>

  /** Drops events up to and including a position that the stored snapshot covers. */
  purgeUpTo(position: Position): Promise<void>

  /** Waits for appends under way, ends every tail. Closing twice is harmless. */
  close(): Promise<void>
}

/**
 * - `closed`: the log was closed before or during the call.
 * - `purged`: the reader asks for events that a snapshot has replaced; load the snapshot first.
 * - `no-snapshot`: a purge that no stored snapshot covers, or a snapshot of the future.
 * - `foreign`: the file is not a log of ours, or of a newer version; it is left alone.
 * - `corrupt`: the file turned out to be damaged after it was opened; close it, call
 *   `moveLogAside` and open it again.
 * - `storage`: the disk or the server failed; the same call may succeed later.
 * - `unwritable`: nothing can be made where the log is to be; only who gave the place can repair that.
 * - `unsupported`: the server is too old, or set up so that it cannot keep a log.
 */
export type LogErrorCode =
  | 'closed'
  | 'purged'
  | 'no-snapshot'
  | 'foreign'
  | 'corrupt'
  | 'storage'
  | 'unwritable'
  | 'unsupported'

/** The log itself failed, or was used against its contract. */
export class LogError extends Error {
  readonly code: LogErrorCode

  constructor(code: LogErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'LogError'
    this.code = code
  }
}

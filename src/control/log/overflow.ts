/**
 * The events of a log file, with those in memory that the file could not store. If a write fails, for example
 * because the disk is full, the log continues in memory, so that changes take effect. The events in memory move to
 * the file, in order, once it can be written again.
 *
 * ```
 *   1 ........ purged ........ stored ........ last
 *                    in the file      in memory
 * ```
 */
import type { DatabaseSync } from 'node:sqlite'
import type { EncodedEvent } from './encode.ts'
import { DamageError } from './event-block.ts'
import { EventTables } from './event-tables.ts'
import type { Position } from './log.ts'

/** Number of events that move to the file in one transaction. */
const moveEvents = 1_000

/** Milliseconds between two attempts to move events to the file. */
const retryMs = 1_000

/** How long SQLite waits for another process that writes the file, unless events are in memory. */
export const busyMs = 5_000

/** Learns when the log continues in memory, because the file cannot be written. */
export interface OverflowListener {
  began(reason: string): void
  /** The file has all events again. */
  ended(): void
}

interface OverflowOptions {
  /** If omitted, events are never added in memory. */
  readonly listener?: OverflowListener
  /** Opens an empty log in memory. */
  openMemory(): DatabaseSync
  /** Runs work in a transaction that writes the file. @throws LogError */
  transaction<Result>(work: () => Result): Result
  /** Sets for how many milliseconds SQLite waits for a lock of the file. */
  waitForLocks(ms: number): void
  /** Called when all events in memory have moved to the file. */
  onStored(): void
}

/** Methods that read or add throw the errors of SQLite, and run in the transaction of the caller. */
export class OverflowingEvents {
  readonly #file: EventTables
  readonly #options: OverflowOptions
  #memory: { readonly database: DatabaseSync; readonly tables: EventTables } | undefined
  #timer: NodeJS.Timeout | undefined

  constructor(file: EventTables, options: OverflowOptions) {
    this.#file = file
    this.#options = options
  }

  get mayOverflow(): boolean {
    return this.#options.listener !== undefined
  }

  /** Whether events are added in memory. */
  get isOverflowing(): boolean {
    return this.#memory !== undefined
  }

  /** Adds events in memory from now on, until all of them could be moved to the file. */
  overflow(reason: string): void {
    if (this.#memory !== undefined) return
    const last = this.#file.last()
    const database = this.#options.openMemory()
    const tables = new EventTables(database)
    // Positions in memory begin after those of the file.
    tables.purge(last)
    this.#memory = { database, tables }
    // A lock of another process must not hold up every attempt.
    this.#options.waitForLocks(0)
    this.#options.listener?.began(reason)
    this.#moveLater(retryMs)
  }

  #moveLater(waitMs: number): void {
    this.#timer = setTimeout(() => {
      const hasMoved = this.#move()
      if (this.#memory !== undefined) this.#moveLater(hasMoved ? 0 : retryMs)
    }, waitMs).unref()
  }

  /** Moves the oldest events in memory to the file. Returns false if it cannot be written yet. */
  #move(): boolean {
    if (this.#memory === undefined) return false
    const { database, tables } = this.#memory
    try {
      const moved = this.#options.transaction(() => this.#store(tables))
      tables.purge(moved)
      if (tables.last() > moved) return true
    } catch {
      return false
    }
    this.#memory = undefined
    database.close()
    this.#options.waitForLocks(busyMs)
    this.#options.listener?.ended()
    this.#options.onStored()
    return true
  }

  /** Returns the position of the last event that was stored. */
  #store(tables: EventTables): Position {
    const stored = tables.purgedUpTo()
    if (this.#file.last() !== stored) throw new DamageError('another process has added events')
    const events = tables.page(stored + 1, tables.last(), moveEvents)
    this.#file.add(
      stored + 1,
      events.map(({ text }) => encoded(text)),
    )
    return (stored + events.length) as Position
  }

  /** Moves what can be moved; the other events in memory are lost. */
  close(): void {
    clearTimeout(this.#timer)
    while (this.#move());
    this.#memory?.database.close()
    this.#memory = undefined
  }

  last(): Position {
    return (this.#memory?.tables ?? this.#file).last()
  }

  purgedUpTo(): number {
    return this.#file.purgedUpTo()
  }

  positionOf(id: string): Position | undefined {
    return this.#memory?.tables.positionOf(id) ?? this.#file.positionOf(id)
  }

  lastOfSubject(subject: string): Position {
    const inMemory = this.#memory?.tables.lastOfSubject(subject) ?? 0
    return inMemory > 0 ? (inMemory as Position) : this.#file.lastOfSubject(subject)
  }

  add(first: number, events: readonly EncodedEvent[]): void {
    ;(this.#memory?.tables ?? this.#file).add(first, events)
  }

  page(from: number, to: number, limit: number): ReturnType<EventTables['page']> {
    const memory = this.#memory?.tables
    if (memory === undefined) return this.#file.page(from, to, limit)
    const stored = memory.purgedUpTo()
    return from > stored
      ? memory.page(from, to, limit)
      : this.#file.page(from, Math.min(to, stored), limit)
  }

  pageOfSubject(
    subject: string,
    range: { readonly from: number; readonly to: number; readonly limit: number },
  ): ReturnType<EventTables['pageOfSubject']> {
    const found = this.#file.pageOfSubject(subject, range)
    const limit = range.limit - found.length
    if (this.#memory === undefined || limit <= 0) return found
    return [...found, ...this.#memory.tables.pageOfSubject(subject, { ...range, limit })]
  }

  removePurged(): void {
    this.#file.removePurged()
  }

  purge(position: Position): void {
    this.#file.purge(position)
  }

  /** Whether `tidy` has work to do in the file. */
  isUntidy(): boolean {
    return this.#memory === undefined && this.#file.isUntidy()
  }

  tidy(): void {
    this.#file.tidy()
  }
}

/** The event as it was added, from its stored text. */
function encoded(text: string): EncodedEvent {
  const { id, subject } = JSON.parse(text) as { id: string; subject: string }
  return { id, subject, body: text }
}

import type { DatabaseSync } from 'node:sqlite'
import type { AnyCloudEvent } from '../../../events/index.ts'
import { fail, succeed } from '../../ground/base/outcome.ts'
import { Arrivals } from './arrivals.ts'
import {
  guard,
  isCorruption,
  type MovedAside,
  noteDamage,
  openDatabase,
  openLogFile,
  openToJoin,
  openToRead,
  rewrite,
  storageError,
} from './embedded-file.ts'
import { EmbeddedSnapshots } from './embedded-snapshots.ts'
import { decodeEvent, type EncodedEvent, encodeEvents, findConflict } from './encode.ts'
import { DamageError } from './event-block.ts'
import { EventTables, type StoredText } from './event-tables.ts'
import {
  type Appended,
  type EventLog,
  type ExpectedVersion,
  LogError,
  type LogSnapshot,
  type NewSnapshot,
  type Position,
  type ReadRange,
  type Recorded,
  type SnapshotInfo,
  type SnapshotQuery,
} from './log.ts'
import { OverflowingEvents, type OverflowListener } from './overflow.ts'
import { packChunks } from './snapshot-codec.ts'

/** An append that waits for the next transaction. */
interface PendingAppend {
  readonly events: readonly EncodedEvent[]
  readonly expectedVersion: ExpectedVersion | undefined
  readonly resolve: (appended: Appended) => void
  readonly reject: (error: LogError) => void
}

/** Number of rows that are read at a time, so that other work can run in between. */
const pageRows = 256

/** Pause between two steps that pack or remove old events. */
const tidyPauseMs = 10

/**
 * Opens the log of a single process in an SQLite file (WAL, synchronous FULL: acknowledged events
 * survive power loss). `movedAside` is set if a damaged file was moved aside. With a listener, the log continues
 * in memory while the file cannot be written; without one, such appends reject.
 * @throws LogError `foreign` or `storage`
 */
export function openEmbeddedLog(
  path: string,
  listener?: OverflowListener,
): {
  readonly log: EventLog
  readonly movedAside: MovedAside | undefined
} {
  const { database, movedAside } = guard(path, () => openLogFile(path))
  const onDamage = () => noteDamage(path)
  return { log: new EmbeddedLog(path, database, onDamage, listener), movedAside }
}

/**
 * Opens the log of another process, or of an earlier run, to read it. The file is not checked as a whole and
 * never moved aside, since it may be large and belong to a running gateway. Damage is reported when the
 * damaged part is read.
 * @throws LogError `foreign`, `corrupt` or `storage`
 */
export function readEmbeddedLog(path: string): EventLog {
  return new EmbeddedLog(
    path,
    guard(path, () => openToRead(path)),
  )
}

/**
 * Opens the log of another process to append to it as well. Like a reader, this neither checks nor repairs the file.
 * Each append is a transaction of SQLite, which waits while the other process writes.
 * @throws LogError `foreign`, `corrupt` or `storage`
 */
export function joinEmbeddedLog(path: string): EventLog {
  return new EmbeddedLog(
    path,
    guard(path, () => openToJoin(path)),
  )
}

class EmbeddedLog implements EventLog {
  readonly #path: string
  readonly #onDamage: () => void
  #database: DatabaseSync
  #events: OverflowingEvents
  #snapshots: EmbeddedSnapshots
  #pending: PendingAppend[] = []
  #flush: NodeJS.Immediate | undefined
  #tidying: NodeJS.Timeout | undefined
  #arrivals = new Arrivals()
  #closed = false

  /** `onDamage` is called when damage is found that only a check of the whole file can judge. */
  constructor(
    path: string,
    database: DatabaseSync,
    onDamage: () => void = () => undefined,
    listener?: OverflowListener,
  ) {
    this.#path = path
    this.#onDamage = onDamage
    this.#database = database
    const inFile = guard(path, () => new EventTables(database))
    this.#events = new OverflowingEvents(inFile, {
      openMemory: () => openDatabase(':memory:'),
      ...(listener && { listener }),
      transaction: (work) => this.#transaction(work),
      waitForLocks: (ms) => database.exec(`PRAGMA busy_timeout = ${ms}`),
      onStored: () => this.#scheduleTidying(),
    })
    this.#snapshots = guard(path, () => new EmbeddedSnapshots(database))
  }

  async append(
    events: readonly AnyCloudEvent[],
    { expectedVersion }: { readonly expectedVersion?: ExpectedVersion } = {},
  ): Promise<Appended> {
    this.#assertOpen()
    const encoded = encodeEvents(events)
    if (!encoded.ok) return encoded
    return new Promise((resolve, reject) => {
      this.#pending.push({ events: encoded.value, expectedVersion, resolve, reject })
      // One fsync serves all appends of this turn of the event loop.
      this.#flush ??= setImmediate(() => this.#flushPending())
    })
  }

  async *read(range: ReadRange = {}): AsyncGenerator<Recorded> {
    this.#assertOpen()
    const last = this.#last()
    const to = Math.min(range.to ?? last, last)
    let from: number = Math.max(range.from ?? this.#first(), 1)
    while (from <= to) {
      const page = this.#page(from, to, range.subject)
      for (const { position, text } of page) yield decodeEvent(position, text)
      from = (page.at(-1)?.position ?? to) + 1
    }
  }

  async *tail(
    from: Position,
    options: { readonly signal?: AbortSignal } = {},
  ): AsyncGenerator<Recorded> {
    this.#assertOpen()
    const { signal } = options
    for (let next: number = Math.max(from, 1); ; ) {
      while (!this.#isOver(signal) && next > this.#last()) await this.#arrivals.next(signal)
      if (this.#isOver(signal)) return
      for (const { position, text } of this.#page(next, this.#last())) {
        yield decodeEvent(position, text)
        next++
        if (this.#isOver(signal)) return
      }
    }
  }

  async lastPosition(): Promise<Position> {
    this.#assertOpen()
    const last = this.#last()
    this.#arrivals.announce()
    return last
  }

  async firstPosition(): Promise<Position> {
    this.#assertOpen()
    return this.#first()
  }

  /** Always 0: a damaged file is moved aside as a whole, so parts of it are never missing. */
  async lostUpTo(): Promise<number> {
    return 0
  }

  async mend(stateAt: (last: Position) => NewSnapshot): Promise<void> {
    await this.saveSnapshot(stateAt(this.#last()))
  }

  async saveSnapshot(snapshot: NewSnapshot): Promise<void> {
    this.#assertOpen()
    // The file may lack events that the snapshot covers.
    if (this.#events.isOverflowing) return
    const chunks = await packChunks(snapshot.chunks)
    this.#assertOpen()
    if (this.#events.isOverflowing) return
    this.#transaction(() =>
      this.#snapshots.save(
        { ...snapshot, chunks },
        { lastPosition: this.#last(), purgedUpTo: this.#purgedUpTo() },
      ),
    )
  }

  async loadSnapshot(query: SnapshotQuery = {}): Promise<LogSnapshot | undefined> {
    this.#assertOpen()
    return this.#guard(() => this.#snapshots.load(query))
  }

  async snapshots(): Promise<readonly SnapshotInfo[]> {
    this.#assertOpen()
    return this.#guard(() => this.#snapshots.list())
  }

  async purgeUpTo(position: Position): Promise<void> {
    this.#assertOpen()
    if (this.#events.isOverflowing) return
    this.#transaction(() => {
      this.#snapshots.purgeUpTo(position)
      this.#events.purge(position)
    })
    this.#scheduleTidying()
  }

  async compact(): Promise<void> {
    this.#assertOpen()
    if (this.#events.isOverflowing) return
    this.#transaction(() => this.#events.removePurged())
    this.#guard(() => rewrite(this.#database, this.#path))
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#flushPending()
    this.#events.close()
    this.#closed = true
    clearTimeout(this.#tidying)
    this.#arrivals.announce()
    this.#database.close()
  }

  /** Executes all waiting appends in the order of the calls, in one transaction. */
  #flushPending(): void {
    clearImmediate(this.#flush)
    this.#flush = undefined
    const pending = this.#pending
    this.#pending = []
    if (pending.length === 0) return
    try {
      const results = this.#decideAll(pending)
      for (const [index, { resolve }] of pending.entries()) resolve(results[index] as Appended)
      this.#arrivals.announce()
      this.#scheduleTidying()
    } catch (error) {
      const failure = storageError(this.#path, error)
      for (const { reject } of pending) reject(failure)
    }
  }

  /** If the file cannot be written, the events are added in memory. */
  #decideAll(pending: readonly PendingAppend[]): readonly Appended[] {
    const decide = () => pending.map((append) => this.#decide(append))
    if (!this.#events.isOverflowing) {
      try {
        return this.#transaction(decide)
      } catch (error) {
        const failure = storageError(this.#path, error)
        if (failure.code !== 'storage' || !this.#events.mayOverflow) throw failure
        this.#events.overflow(failure.message)
      }
    }
    return this.#readOnly(decide)
  }

  /** Inserts all events of one append or none; conflicts are checked before. */
  #decide({ events, expectedVersion }: PendingAppend): Appended {
    const known = events.map(({ id }) => this.#events.positionOf(id))
    if (expectedVersion !== undefined && known.includes(undefined)) {
      const conflict = findConflict(expectedVersion, {
        purgedUpTo: this.#purgedUpTo(),
        lastPosition: () => this.#last(),
        lastOfSubject: (subject) => this.#events.lastOfSubject(subject),
      })
      if (conflict !== undefined) return fail(conflict)
    }
    const first = this.#last() + 1
    const added = new Map<string, Position>()
    const fresh: EncodedEvent[] = []
    const positions = events.map((event, index) => {
      const before = known[index] ?? added.get(event.id)
      if (before !== undefined) return before
      const position = (first + fresh.length) as Position
      fresh.push(event)
      added.set(event.id, position)
      return position
    })
    this.#events.add(first, fresh)
    return succeed(positions)
  }

  /** Each event is decoded when it is read, so that only one is in memory. */
  #page(from: number, to: number, subject?: string): readonly StoredText[] {
    this.#assertOpen()
    return this.#readOnly(() => {
      if (from < this.#first()) throw new LogError('purged', `position ${from} was purged`)
      if (subject !== undefined) {
        return this.#events.pageOfSubject(subject, { from, to, limit: pageRows })
      }
      const stored = this.#events.page(from, to, pageRows)
      const hole = stored.findIndex(({ position }, index) => position !== from + index)
      if (hole < 0 && (stored.length > 0 || from > to)) return stored
      throw new DamageError(`the event at position ${from + Math.max(hole, 0)} is missing`)
    })
  }

  /** Packs or removes old events, a block at a time, so that other work can run in between. */
  #scheduleTidying(): void {
    if (this.#tidying !== undefined || this.#closed) return
    if (!this.#guard(() => this.#events.isUntidy())) return
    this.#tidying = setTimeout(() => {
      this.#tidying = undefined
      if (this.#events.isOverflowing) return
      try {
        // Power loss may undo this step, but not an append: the next one syncs the same file.
        this.#database.exec('PRAGMA synchronous = NORMAL')
        this.#transaction(() => this.#events.tidy())
      } catch {
        // The events stay as they are. The next append or purge repeats the attempt.
        return
      } finally {
        this.#database.exec('PRAGMA synchronous = FULL')
      }
      this.#scheduleTidying()
    }, tidyPauseMs).unref()
  }

  /** Reads one state of the file, even if another process packs or purges events at the same time. */
  #readOnly<Result>(work: () => Result): Result {
    return this.#transaction(work, 'DEFERRED')
  }

  #transaction<Result>(work: () => Result, mode: 'IMMEDIATE' | 'DEFERRED' = 'IMMEDIATE'): Result {
    return this.#guard(() => {
      this.#database.exec(`BEGIN ${mode}`)
      try {
        const result = work()
        this.#database.exec('COMMIT')
        return result
      } catch (error) {
        if (this.#database.isTransaction) this.#database.exec('ROLLBACK')
        throw error
      }
    })
  }

  #guard<Result>(work: () => Result): Result {
    try {
      return work()
    } catch (error) {
      if (isCorruption(error)) this.#onDamage()
      throw storageError(this.#path, error)
    }
  }

  #last(): Position {
    return this.#guard(() => this.#events.last())
  }

  #first(): Position {
    return (this.#purgedUpTo() + 1) as Position
  }

  #purgedUpTo(): number {
    return this.#guard(() => this.#events.purgedUpTo())
  }

  #isOver(signal: AbortSignal | undefined): boolean {
    return this.#closed || signal?.aborted === true
  }

  #assertOpen(): void {
    if (this.#closed) throw new LogError('closed', 'the log is closed')
  }
}

/** A log in memory, with the same tables as a file. It is lost when the process ends. */
export class MemoryLog extends EmbeddedLog {
  constructor() {
    super('in memory', openDatabase(':memory:'))
  }
}

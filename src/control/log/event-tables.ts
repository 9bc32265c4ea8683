/**
 * The tables that hold the events of a log file. New events are rows of `events`, so that an append writes
 * little. The oldest rows are packed into compressed blocks as soon as there are enough of them, and most
 * events of a large append at once.
 *
 * ```
 *   1 ................ purged ....... packed ............... last
 *   (removed)                blocks          rows of `events`
 * ```
 *
 * `ids`, `subjects` and `positions` are the indexes of the blocks. They may still have entries of purged events, which count
 * as absent. docs/adr/0018-events-in-compressed-blocks.md gives the reasons.
 */
import { hash } from 'node:crypto'
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { EncodedEvent } from './encode.ts'
import {
  DamageError,
  type EventBlock,
  maxBlockBytes,
  maxBlockEvents,
  packBlock,
  unpackBlock,
} from './event-block.ts'
import { beginning, type Position } from './log.ts'

export const rowTables = `
  CREATE TABLE events (
    position INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    subject TEXT NOT NULL,
    body TEXT NOT NULL
  ) STRICT;
  CREATE INDEX events_by_subject ON events (subject, position);
  CREATE TABLE purged (only INTEGER PRIMARY KEY CHECK (only = 1), up_to INTEGER NOT NULL) STRICT;
  INSERT INTO purged VALUES (1, 0);
`

/** Tables that a file of schema version 1 does not have. A reader creates them empty, as temporary ones. */
export const blockTables = (temporary: 'TEMP' | ''): string => `
  CREATE ${temporary} TABLE blocks (
    last INTEGER PRIMARY KEY,
    first INTEGER NOT NULL,
    body BLOB NOT NULL
  ) STRICT;
  CREATE ${temporary} TABLE ids (
    hash INTEGER NOT NULL,
    position INTEGER NOT NULL,
    PRIMARY KEY (hash, position)
  ) STRICT, WITHOUT ROWID;
  CREATE ${temporary} TABLE subjects (
    subject TEXT PRIMARY KEY,
    position INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE ${temporary} TABLE positions (
    subject_hash INTEGER NOT NULL,
    position INTEGER NOT NULL,
    PRIMARY KEY (subject_hash, position)
  ) STRICT, WITHOUT ROWID;
`

/** When rows are packed. Tests choose lower numbers. */
interface PackingLimits {
  /** Number of events that stay rows, so that readers of new events and repeated appends need no block. */
  readonly newestRows: number
  readonly blockEvents: number
}

const packingLimits: PackingLimits = { newestRows: 256, blockEvents: maxBlockEvents }

/** An event as it is stored. */
export interface StoredText {
  readonly position: number
  readonly text: string
}

/** Its methods throw the errors of SQLite, and run in the transaction of the caller. */
export class EventTables {
  readonly #limits: PackingLimits
  readonly #statements: ReturnType<typeof prepareStatements>
  /** The block that was read last, since single events are often read one after the other. */
  #unpacked: { readonly block: EventBlock; readonly texts: readonly string[] } | undefined

  constructor(database: DatabaseSync, limits = packingLimits) {
    this.#limits = limits
    this.#statements = prepareStatements(database)
  }

  last(): Position {
    const purged = this.purgedUpTo()
    const newest = this.#statements.last.get()?.position
    if (typeof newest !== 'number') return Math.max(this.#packedUpTo(), purged) as Position
    if (newest > purged) return newest as Position
    throw new DamageError(`the log ends at position ${newest}, but is purged up to ${purged}`)
  }

  /** @throws DamageError if the table does not say */
  purgedUpTo(): number {
    const upTo = Number(this.#statements.purged.get()?.up_to)
    if (upTo >= 0) return upTo
    throw new DamageError('the number of purged events is missing')
  }

  /** Returns the position of the event with this id; undefined if there is none or it was purged. */
  positionOf(id: string): Position | undefined {
    const row = this.#statements.byId.get(id)
    if (row !== undefined) return Number(row.position) as Position
    for (const { position } of this.#statements.byHash.all(hashOf(id))) {
      const [stored] = this.page(Number(position), Number(position), 1)
      if (stored === undefined || envelopeOf(stored.text).id !== id) continue
      return stored.position as Position
    }
    return undefined
  }

  /** Returns the position of the newest event of a subject, even if it was purged. */
  lastOfSubject(subject: string): Position {
    const { lastOfSubject, packedSubject } = this.#statements
    const row = lastOfSubject.get(subject)?.position ?? packedSubject.get(subject)?.position
    return Number(row ?? beginning) as Position
  }

  /**
   * Adds consecutive events whose ids the log does not have. Of a large number, only the newest become rows.
   * The others are packed at once, so that a first listing does not write every event twice.
   */
  add(first: number, events: readonly EncodedEvent[]): void {
    const { newestRows, blockEvents } = this.#limits
    let added = 0
    if (events.length >= newestRows + blockEvents) {
      while (this.#hasRows()) this.#packOldest()
      for (const packed = events.length - newestRows; added < packed; ) {
        added += this.#pack(
          first + added,
          events.slice(added, Math.min(packed, added + blockEvents)),
        )
      }
    }
    for (; added < events.length; added++) {
      const { id, subject, body } = events[added] as EncodedEvent
      this.#statements.insert.run(first + added, id, subject, body)
    }
  }

  /** Reads events in order: the rest of a block, or up to `limit` rows. Missing events are left out. */
  page(from: number, to: number, limit: number): readonly StoredText[] {
    const unpacked = this.#blockAt(from)
    if (unpacked === undefined) {
      const rows = this.#statements.rows.all(from, to, limit)
      return rows.map(({ position, body }) => ({ position: Number(position), text: String(body) }))
    }
    const { block, texts } = unpacked
    return texts
      .slice(from - block.first, to - block.first + 1)
      .map((text, index) => ({ position: from + index, text }))
  }

  /** Reads up to `limit` events of a subject in order. */
  pageOfSubject(
    subject: string,
    { from, to, limit }: { readonly from: number; readonly to: number; readonly limit: number },
  ): readonly StoredText[] {
    const { positions, rowsOfSubject } = this.#statements
    const packed = positions
      .all(hashOf(subject), from, to, limit)
      .flatMap(({ position }) => this.page(Number(position), Number(position), 1))
      .filter(({ text }) => envelopeOf(text).subject === subject)
    const rows = rowsOfSubject
      .all(subject, from, to, limit - packed.length)
      .map(({ position, body }) => ({ position: Number(position), text: String(body) }))
    return [...packed, ...rows]
  }

  /** Removes events that readers no longer get. The blocks among them are removed by `tidy`. */
  purge(position: Position): void {
    this.#statements.purge.run(position)
    this.#statements.setPurged.run(position)
  }

  /** Whether `tidy` has work to do. */
  isUntidy(): boolean {
    const purged = this.purgedUpTo()
    if (this.#oldestBlock() <= purged) return true
    const { newestRows, blockEvents } = this.#limits
    return this.last() - Math.max(this.#packedUpTo(), purged) >= newestRows + blockEvents
  }

  /** Removes one purged block, or packs the oldest rows into one. */
  tidy(): void {
    const oldest = this.#oldestBlock()
    if (oldest <= this.purgedUpTo()) this.#removeBlock(oldest)
    else this.#packOldest()
  }

  /** Removes all purged blocks. */
  removePurged(): void {
    for (const purged = this.purgedUpTo(); this.#oldestBlock() <= purged; ) {
      this.#removeBlock(this.#oldestBlock())
    }
    this.#unpacked = undefined
  }

  /** Last position of the oldest block. */
  #oldestBlock(): number {
    return Number(this.#statements.oldestBlock.get()?.position ?? Number.POSITIVE_INFINITY)
  }

  #packedUpTo(): number {
    return Number(this.#statements.packed.get()?.position ?? 0)
  }

  #blockAt(position: number) {
    const known = this.#unpacked
    if (known !== undefined && known.block.first <= position && position <= known.block.last) {
      return known
    }
    const row = this.#statements.block.get(position)
    if (row === undefined || Number(row.first) > position) return undefined
    const block = blockOf(row)
    this.#unpacked = { block, texts: unpackBlock(block) }
    return this.#unpacked
  }

  #hasRows(): boolean {
    return typeof this.#statements.last.get()?.position === 'number'
  }

  #packOldest(): void {
    const first = Math.max(this.#packedUpTo(), this.purgedUpTo()) + 1
    const count = this.#pack(first, this.#oldestRows(first))
    this.#statements.purge.run(first + count - 1)
  }

  *#oldestRows(first: number): Generator<EncodedEvent> {
    let expected = first
    const rows = this.#statements.oldestRows.iterate(this.#limits.blockEvents)
    for (const { position, id, subject, body } of rows) {
      if (position !== expected) {
        throw new DamageError(`the event at position ${expected} is missing`)
      }
      yield { id: String(id), subject: String(subject), body: String(body) }
      expected++
    }
  }

  /** Packs the first of these events into a block, as many as fit. Returns their number. */
  #pack(first: number, events: Iterable<EncodedEvent>): number {
    const { addBlock, addId, addPosition, setSubject } = this.#statements
    const texts: string[] = []
    let bytes = 0
    for (const { id, subject, body } of events) {
      bytes += Buffer.byteLength(body) + 1
      if (texts.length > 0 && bytes > maxBlockBytes) break
      const position = first + texts.length
      addId.run(hashOf(id), position)
      setSubject.run(subject, position)
      addPosition.run(hashOf(subject), position)
      texts.push(body)
    }
    const block = packBlock(first, texts)
    addBlock.run(block.last, block.first, block.body)
    return texts.length
  }

  /** A damaged block is removed too. Its entries of `ids` and `subjects` stay and count as absent. */
  #removeBlock(last: number): void {
    const { block: select, removeBlock, removeId, removePosition, removeSubject } = this.#statements
    const block = blockOf(select.get(last) ?? {})
    for (const [index, text] of textsOrNone(block).entries()) {
      const { id, subject } = envelopeOf(text)
      removeId.run(hashOf(id), block.first + index)
      removeSubject.run(subject, last)
      removePosition.run(hashOf(subject), block.first + index)
    }
    removeBlock.run(last)
  }
}

function prepareStatements(database: DatabaseSync) {
  const prepare = (query: string): StatementSync => database.prepare(query)
  return {
    insert: prepare('INSERT INTO events VALUES (?, ?, ?, ?)'),
    byId: prepare('SELECT position FROM events WHERE id = ?'),
    byHash: prepare(
      'SELECT position FROM ids WHERE hash = ? AND position > (SELECT up_to FROM purged)',
    ),
    last: prepare('SELECT max(position) AS position FROM events'),
    packed: prepare('SELECT max(last) AS position FROM blocks'),
    lastOfSubject: prepare('SELECT max(position) AS position FROM events WHERE subject = ?'),
    packedSubject: prepare('SELECT position FROM subjects WHERE subject = ?'),
    rows: prepare(
      'SELECT position, body FROM events WHERE position BETWEEN ? AND ? ORDER BY position LIMIT ?',
    ),
    positions: prepare(
      `SELECT position FROM positions
       WHERE subject_hash = ? AND position BETWEEN ? AND ? ORDER BY position LIMIT ?`,
    ),
    rowsOfSubject: prepare(
      `SELECT position, body FROM events
       WHERE subject = ? AND position BETWEEN ? AND ? ORDER BY position LIMIT ?`,
    ),
    block: prepare('SELECT * FROM blocks WHERE last >= ? ORDER BY last LIMIT 1'),
    oldestBlock: prepare('SELECT min(last) AS position FROM blocks'),
    oldestRows: prepare('SELECT * FROM events ORDER BY position LIMIT ?'),
    addBlock: prepare('INSERT INTO blocks VALUES (?, ?, ?)'),
    addId: prepare('INSERT INTO ids VALUES (?, ?)'),
    setSubject: prepare('INSERT OR REPLACE INTO subjects VALUES (?, ?)'),
    removeBlock: prepare('DELETE FROM blocks WHERE last = ?'),
    removeId: prepare('DELETE FROM ids WHERE hash = ? AND position = ?'),
    addPosition: prepare('INSERT INTO positions VALUES (?, ?)'),
    removePosition: prepare('DELETE FROM positions WHERE subject_hash = ? AND position = ?'),
    removeSubject: prepare('DELETE FROM subjects WHERE subject = ? AND position <= ?'),
    purge: prepare('DELETE FROM events WHERE position <= ?'),
    purged: prepare('SELECT up_to FROM purged'),
    setPurged: prepare('UPDATE purged SET up_to = max(up_to, ?)'),
  }
}

const blockOf = ({ first, last, body }: Readonly<Record<string, unknown>>): EventBlock => ({
  first: Number(first),
  last: Number(last),
  body: body as Uint8Array,
})

function textsOrNone(block: EventBlock): readonly string[] {
  try {
    return unpackBlock(block)
  } catch {
    return []
  }
}

const envelopeOf = (text: string) => JSON.parse(text) as { id: string; subject: string }

/** 48 bits of a digest: SQLite stores them in 6 bytes. Different ids may have the same hash. */
function hashOf(id: string): number {
  return hash('sha256', id, 'buffer').readIntBE(0, 6)
}

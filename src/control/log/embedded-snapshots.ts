import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { crc32 } from 'node:zlib'
import {
  LogError,
  type LogSnapshot,
  type Position,
  type SnapshotInfo,
  type SnapshotQuery,
} from './log.ts'
import { unpackChunks } from './snapshot-codec.ts'
import { surplusSnapshots } from './snapshot-thinning.ts'

/** The snapshots in the file of an embedded log. Methods that write must run in a transaction. */
export class EmbeddedSnapshots {
  readonly #statements: ReturnType<typeof prepareStatements>

  constructor(database: DatabaseSync) {
    this.#statements = prepareStatements(database)
  }

  /** Stores a snapshot whose chunks are packed, and removes those that exceed the budget. */
  save(
    { position, foldVersion, chunks }: LogSnapshot,
    log: { readonly lastPosition: number; readonly purgedUpTo: number },
  ): void {
    const { remove, addChunk } = this.#statements
    if (position > log.lastPosition) {
      throw new LogError('no-snapshot', `position ${position} has not been reached`)
    }
    if (position < log.purgedUpTo) {
      throw new LogError('no-snapshot', `a newer snapshot than ${position} is needed by now`)
    }
    remove.run(position)
    // Chunk -1 stores the position, since a snapshot may have no chunks, and the seal of the others.
    addChunk.run(position, foldVersion, -1, sealOf(position, chunks))
    for (const [index, chunk] of chunks.entries()) addChunk.run(position, foldVersion, index, chunk)
    const bytes = Number(this.#statements.fileBytes.get()?.bytes)
    const surplus = surplusSnapshots(this.list(), { ...log, bytes, foldVersion })
    for (const { position } of surplus) remove.run(position)
  }

  async load(query: SnapshotQuery): Promise<LogSnapshot | undefined> {
    const { foldVersion } = query
    const atMost = Math.min(query.atMost ?? Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER)
    const { newest, newestOf, chunks } = this.#statements
    const found = foldVersion === undefined ? newest.get(atMost) : newestOf.get(atMost, foldVersion)
    if (found === undefined) return undefined
    const position = Number(found.position) as Position
    // Read synchronously with the position, since the snapshot may be removed later.
    const rows = chunks.all(position)
    const packed = rows.map(({ body }) => body as Uint8Array)
    const seal = found.body as Uint8Array
    // Earlier versions wrote no seal.
    if (seal.length > 0 && !sealOf(position, packed).equals(seal)) {
      throw new LogError('corrupt', `the snapshot at position ${position} is damaged`)
    }
    return {
      position,
      foldVersion: String(found.fold_version),
      chunks: await unpackChunks(position, packed),
    }
  }

  list(): SnapshotInfo[] {
    return this.#statements.list.all().map(({ position, fold_version, bytes }) => ({
      position: Number(position) as Position,
      foldVersion: String(fold_version),
      bytes: Number(bytes),
    }))
  }

  /** Removes the snapshots before a position up to which events are purged. A later one must exist. */
  purgeUpTo(position: Position): void {
    if (position > Number(this.#statements.last.get()?.position ?? 0)) {
      throw new LogError('no-snapshot', `no stored snapshot covers position ${position}`)
    }
    this.#statements.removeBefore.run(position)
  }
}

/**
 * The seal of a snapshot: the number of its chunks, and a checksum over its position and all chunks. The checksums of
 * the single chunks do not suffice, because the state is valid JSON even if a chunk is missing.
 */
function sealOf(position: number, chunks: readonly Uint8Array[]): Buffer {
  const seal = Buffer.alloc(8)
  const sum = chunks.reduce((before, chunk) => crc32(chunk, before), crc32(`${position}`))
  seal.writeUInt32LE(chunks.length, 0)
  seal.writeUInt32LE(sum, 4)
  return seal
}

function prepareStatements(database: DatabaseSync) {
  const prepare = (query: string): StatementSync => database.prepare(query)
  const newest = (condition: string) =>
    prepare(
      `SELECT position, fold_version, body FROM snapshots
       WHERE chunk = -1 AND position <= ?${condition} ORDER BY position DESC LIMIT 1`,
    )
  return {
    addChunk: prepare('INSERT INTO snapshots VALUES (?, ?, ?, ?)'),
    remove: prepare('DELETE FROM snapshots WHERE position = ?'),
    removeBefore: prepare('DELETE FROM snapshots WHERE position < ?'),
    newest: newest(''),
    newestOf: newest(' AND fold_version = ?'),
    chunks: prepare('SELECT body FROM snapshots WHERE position = ? AND chunk >= 0 ORDER BY chunk'),
    list: prepare(
      `SELECT position, fold_version, sum(length(body)) AS bytes
       FROM snapshots GROUP BY position ORDER BY position`,
    ),
    last: prepare('SELECT max(position) AS position FROM snapshots'),
    fileBytes: prepare(
      'SELECT page_count * page_size AS bytes FROM pragma_page_count, pragma_page_size',
    ),
  }
}

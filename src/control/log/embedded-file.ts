import {
  chmodSync,
  closeSync,
  existsSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'
import { makeFolder } from '../../ground/base/make-folder.ts'
import { DamageError } from './event-block.ts'
import { blockTables, rowTables } from './event-tables.ts'
import { LogError } from './log.ts'
import { busyMs } from './overflow.ts'

/** 'SLUI' in ASCII: distinguishes our files from other SQLite databases. */
const applicationId = 0x53_4c_55_49

const snapshotTable = `
  CREATE TABLE snapshots (
    position INTEGER NOT NULL,
    fold_version TEXT NOT NULL,
    chunk INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (position, chunk)
  ) STRICT;
`

/** By schema version, the SQL that turns its file into one of the next version; 0 is an empty file. */
const migrations = [
  `${rowTables} ${snapshotTable}`,
  // Version 2 may have several snapshots, and their chunks are compressed; those of version 1 are not.
  '',
  blockTables(''),
]

const tableNames = ['events', 'purged', 'snapshots', 'blocks', 'ids', 'subjects', 'positions']

/** New path of a damaged file, and what was wrong with it. */
export interface MovedAside {
  readonly path: string
  readonly reason: string
}

/** An open database that has passed its checks. */
interface LogFile {
  readonly database: DatabaseSync
  readonly movedAside: MovedAside | undefined
}

/**
 * Opens the file of an embedded log, or creates it and its folder (mode 0600). A damaged file is
 * renamed to `<file>.corrupt-<n>` and replaced by an empty one. That loses history only, since the
 * sources are listed again.
 * @throws LogError `foreign` for a database that is not ours, `storage` if the disk refuses
 */
export function openLogFile(path: string): LogFile {
  try {
    makeFolder(dirname(path))
    // The file is created here and not by SQLite, since -wal and -shm inherit its mode.
    closeSync(openSync(path, 'a', 0o600))
    chmodSync(path, 0o600)
  } catch (cause) {
    throw new LogError('storage', `cannot open the log file ${path}: ${messageOf(cause)}`, {
      cause,
    })
  }
  const damage = findDamage(path)
  rmSync(noteOf(path), { force: true })
  if (damage === undefined) return { database: openDatabase(path), movedAside: undefined }
  const movedAside = { path: moveLogAside(path), reason: damage }
  closeSync(openSync(path, 'a', 0o600))
  return { database: openDatabase(path), movedAside }
}

/** A file of up to this size is read as a whole when it is opened, to check it. */
const alwaysCheckedBytes = 32 * 1024 * 1024

/**
 * A file that exists from when damage is found in a log until the log is checked. It has the reason if the log
 * is known to be unusable, and is empty if the whole file has to be checked.
 */
const noteOf = (path: string) => `${path}.damaged`

/**
 * Notes that a part of the file is damaged, so that the next process that opens it checks the whole file. With a
 * reason, the file is moved aside without a check.
 */
export function noteDamage(path: string, reason = ''): void {
  try {
    writeFileSync(noteOf(path), reason, { mode: 0o600 })
  } catch {
    // The damage is found again when that part is read again.
  }
}

/** Returns what is wrong with the file, or undefined. A large file is read only if damage was noted. */
function findDamage(path: string): string | undefined {
  let database: DatabaseSync | undefined
  try {
    // SQLite compares the length of the file with the one in its header.
    database = openWith(path, (opened) => assertUsable(opened, path))
    const known = existsSync(noteOf(path)) ? readFileSync(noteOf(path), 'utf8') : ''
    if (known !== '') return known
    if (statSync(path).size > alwaysCheckedBytes && !existsSync(noteOf(path))) return undefined
    const [first] = database.prepare('PRAGMA quick_check(1)').all()
    const verdict = String(first?.quick_check)
    return verdict === 'ok' ? undefined : verdict
  } catch (error) {
    if (isCorruption(error) || error instanceof DamageError) return messageOf(error)
    throw error
  } finally {
    database?.close()
  }
}

/** Opens the file without checks; creates the tables, or migrates a file of an earlier schema version. */
export function openDatabase(path: string): DatabaseSync {
  return openWith(path, migrate)
}

function openWith(
  path: string,
  prepare: (database: DatabaseSync, path: string) => unknown,
): DatabaseSync {
  // Waits for another process that reads or writes the same file.
  const database = new DatabaseSync(path, { timeout: busyMs })
  try {
    database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;')
    prepare(database, path)
    return database
  } catch (error) {
    database.close()
    throw error
  }
}

/** Opens a log that another process may be writing. @throws LogError `foreign` if it is of another version */
export function openToJoin(path: string): DatabaseSync {
  return openWith(path, (database) => {
    const version = versionOf(database, path)
    if (version === migrations.length) return
    const what = version === 0 ? 'is no log' : 'was written by an older version'
    throw new LogError('foreign', `${path} ${what}`)
  })
}

/**
 * Opens a log to read it, even on read-only media. On such media, SQLite cannot read the events that a killed
 * process has left in its `-wal` file, so such a log must be copied first.
 */
export function openToRead(path: string): DatabaseSync {
  try {
    return openWith(path, adapt)
  } catch (error) {
    const code = codeOf(error)
    if (code === undefined || !unwritable.includes(code)) throw error
    if (existsSync(`${path}-wal`)) {
      const what =
        'its last events are in the -wal file next to it, which can only be read where files can be written'
      throw new LogError('storage', `${path} cannot be read here: ${what}; copy both`)
    }
  }
  const place = pathToFileURL(path)
  place.searchParams.set('immutable', '1')
  const database = new DatabaseSync(place, { readOnly: true })
  try {
    adapt(database, path)
    return database
  } catch (error) {
    database.close()
    throw error
  }
}

/** Returns the schema version of a log of Sluice; 0 for an empty file. @throws LogError for any other one */
function versionOf(database: DatabaseSync, path: string): number {
  const id = numberOf(database, 'PRAGMA application_id')
  const version = numberOf(database, 'PRAGMA user_version')
  const tables = numberOf(database, 'SELECT count(*) FROM sqlite_schema')
  if (id === 0 && version === 0 && tables === 0) return 0
  if (id !== applicationId) {
    throw new LogError('foreign', `${path} is a database, but not a log of Sluice`)
  }
  if (version > migrations.length) {
    throw new LogError('foreign', `${path} was written by a newer version (${version})`)
  }
  return version
}

/** @throws LogError if the file is no log, DamageError if a log of this version lacks a table */
function assertUsable(database: DatabaseSync, path: string): void {
  if (versionOf(database, path) < migrations.length) return
  const query = "SELECT name FROM sqlite_schema WHERE type = 'table'"
  const found = new Set(
    database
      .prepare(query)
      .all()
      .map(({ name }) => String(name)),
  )
  const missing = tableNames.filter((name) => !found.has(name))
  if (missing.length > 0) throw new DamageError(`it has no table ${missing.join(', ')}`)
}

function migrate(database: DatabaseSync, path: string): void {
  database.exec('BEGIN IMMEDIATE')
  try {
    const version = versionOf(database, path)
    for (const migration of migrations.slice(version)) database.exec(migration)
    database.exec(`PRAGMA application_id = ${applicationId}`)
    database.exec(`PRAGMA user_version = ${migrations.length}`)
    database.exec('COMMIT')
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK')
    throw error
  }
}

/**
 * Lets the statements of this version read a file of an earlier one. The file is not changed, since a process
 * of that version may be writing to it.
 */
function adapt(database: DatabaseSync, path: string): void {
  const version = versionOf(database, path)
  if (version === 0) throw new LogError('foreign', `${path} is no log`)
  if (version < migrations.length)
    database.exec(`PRAGMA temp_store = MEMORY; ${blockTables('TEMP')}`)
}

function numberOf(database: DatabaseSync, query: string): number {
  return Number(Object.values(database.prepare(query).get() ?? {})[0] ?? 0)
}

/** Renames the files of a closed log. Returns the new path. */
function moveLogAside(path: string): string {
  let number = 1
  while (existsSync(`${path}.corrupt-${number}`)) number++
  const aside = `${path}.corrupt-${number}`
  for (const suffix of ['', '-wal', '-shm']) {
    if (existsSync(path + suffix)) renameSync(path + suffix, aside + suffix)
  }
  return aside
}

/** SQLITE_CORRUPT (11) and SQLITE_NOTADB (26). */
export function isCorruption(error: unknown): boolean {
  const code = codeOf(error)
  return code !== undefined && [11, 26].includes(code)
}

/** SQLITE_READONLY (8) and SQLITE_CANTOPEN (14). */
const unwritable: readonly number[] = [8, 14]

/** The primary result code of an SQLite error. */
function codeOf(error: unknown): number | undefined {
  const code = (error as { errcode?: unknown }).errcode
  return typeof code === 'number' ? code & 0xff : undefined
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** Writes the file again, because pages that were freed keep their bytes until then. */
export function rewrite(database: DatabaseSync, path: string): void {
  database.exec('VACUUM')
  const [result] = database.prepare('PRAGMA wal_checkpoint(TRUNCATE)').all()
  if (result?.busy !== 1) return
  throw new LogError('storage', `another process reads ${path}; try again`)
}

/** Runs work on a file. @throws LogError */
export function guard<Result>(path: string, work: () => Result): Result {
  try {
    return work()
  } catch (error) {
    throw storageError(path, error)
  }
}

export function storageError(path: string, cause: unknown): LogError {
  if (cause instanceof LogError) return cause
  const message = cause instanceof Error ? cause.message : String(cause)
  return cause instanceof DamageError || isCorruption(cause)
    ? new LogError('corrupt', `the log file ${path} is damaged: ${message}`, { cause })
    : new LogError('storage', `the log ${path} cannot be read or written: ${message}`, { cause })
}

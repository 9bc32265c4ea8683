import { chmodSync, closeSync, existsSync, openSync, renameSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'
import { makeFolder } from '../base/make-folder.ts'
import { LogError } from './log.ts'

/** 'SLUI' in ASCII: distinguishes our files from other SQLite databases. */
const applicationId = 0x53_4c_55_49
const schemaVersion = 2

/** By schema version, the SQL that turns its file into one of the next version. */
const migrations: ReadonlyMap<number, string> = new Map([
  // Version 2 may have several snapshots, and their chunks are compressed; those of version 1 are not.
  [1, ''],
])

const schema = `
  CREATE TABLE events (
    position INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    subject TEXT NOT NULL,
    body TEXT NOT NULL
  ) STRICT;
  CREATE INDEX events_by_subject ON events (subject, position);
  CREATE TABLE purged (only INTEGER PRIMARY KEY CHECK (only = 1), up_to INTEGER NOT NULL) STRICT;
  INSERT INTO purged VALUES (1, 0);
  CREATE TABLE snapshots (
    position INTEGER NOT NULL,
    fold_version TEXT NOT NULL,
    chunk INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (position, chunk)
  ) STRICT;
`

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
  if (damage === undefined) return { database: openDatabase(path), movedAside: undefined }
  const movedAside = { path: moveLogAside(path), reason: damage }
  closeSync(openSync(path, 'a', 0o600))
  return { database: openDatabase(path), movedAside }
}

/** Returns what is wrong with the file, or undefined. Reads the whole file (`PRAGMA quick_check`). */
function findDamage(path: string): string | undefined {
  let database: DatabaseSync | undefined
  try {
    database = openDatabase(path, { migrate: false })
    const [first] = database.prepare('PRAGMA quick_check(1)').all()
    const verdict = String(first?.quick_check)
    return verdict === 'ok' ? undefined : verdict
  } catch (error) {
    if (isCorruption(error)) return messageOf(error)
    throw error
  } finally {
    database?.close()
  }
}

/**
 * Opens the file without checks; creates the tables if there are none. Migrates a file of an earlier schema
 * version, unless `migrate` is false: a process of an earlier version may be writing to it.
 */
export function openDatabase(path: string, { migrate = true } = {}): DatabaseSync {
  // Waits for another process that reads or writes the same file.
  const database = new DatabaseSync(path, { timeout: 5000 })
  try {
    database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;')
    prepareSchema(database, path, migrate)
    return database
  } catch (error) {
    database.close()
    throw error
  }
}

/**
 * Opens a log to read it, even on read-only media. On such media, SQLite cannot read the events that a killed
 * process has left in the `-wal` file beside it, so such a log must be copied first.
 */
export function openToRead(path: string): DatabaseSync {
  try {
    return openDatabase(path, { migrate: false })
  } catch (error) {
    const code = codeOf(error)
    if (code === undefined || !unwritable.includes(code)) throw error
    if (existsSync(`${path}-wal`)) {
      const what = 'its last events are in the -wal file beside it, which takes a place to write'
      throw new LogError('storage', `${path} cannot be read here: ${what}; copy both`)
    }
  }
  const place = pathToFileURL(path)
  place.searchParams.set('immutable', '1')
  const database = new DatabaseSync(place, { readOnly: true })
  try {
    if (versionOf(database, path) === 0) throw new LogError('foreign', `${path} is no log`)
    return database
  } catch (error) {
    database.close()
    throw error
  }
}

/** The schema version of a log; 0 if the database is empty. @throws LogError if it is not a log */
function versionOf(database: DatabaseSync, path: string): number {
  const id = numberOf(database, 'PRAGMA application_id')
  const version = numberOf(database, 'PRAGMA user_version')
  const tables = numberOf(database, 'SELECT count(*) FROM sqlite_schema')
  if (id === 0 && version === 0 && tables === 0) return 0
  if (id !== applicationId) {
    throw new LogError('foreign', `${path} is a database, but not a log of Sluice`)
  }
  if (version !== schemaVersion && !migrations.has(version)) {
    throw new LogError('foreign', `${path} was written by a newer version (${version})`)
  }
  return version
}

function prepareSchema(database: DatabaseSync, path: string, migrate: boolean): void {
  database.exec('BEGIN IMMEDIATE')
  try {
    const version = versionOf(database, path)
    if (version === 0) {
      database.exec(schema)
      database.exec(`PRAGMA application_id = ${applicationId}`)
    } else if (migrate) {
      for (let from = version; from < schemaVersion; from++)
        database.exec(migrations.get(from) ?? '')
    }
    if (version === 0 || migrate) database.exec(`PRAGMA user_version = ${schemaVersion}`)
    database.exec('COMMIT')
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK')
    throw error
  }
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

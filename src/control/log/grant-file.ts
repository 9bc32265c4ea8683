/** The grants of users in a file, for one machine. Several processes may use it: each change is a transaction. */
import { chmodSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { makeFolder } from '../../ground/base/make-folder.ts'
import { type GrantStore, grantText, kindOfKey, readGrant } from '../../ground/model/grants.ts'
import { busyMs } from './overflow.ts'

const table =
  'CREATE TABLE IF NOT EXISTS grants (key TEXT PRIMARY KEY, version INTEGER NOT NULL, body TEXT NOT NULL) STRICT'

type Row = { readonly key: string; readonly version: number; readonly body: string }

/** Creates the file if it does not exist (mode 0600). Throws if it cannot be used. */
export function openGrantFile(path: string): GrantStore {
  makeFolder(dirname(path))
  const database = new DatabaseSync(path, { timeout: busyMs })
  chmodSync(path, 0o600)
  // What is deleted is overwritten, so that neither tokens nor names stay in free pages.
  database.exec('PRAGMA secure_delete = ON')
  database.exec(table)
  const select = database.prepare('SELECT key, version, body FROM grants WHERE key = ?')
  // Keys of other kinds begin with the name of the kind and a dot.
  const ofKind = database.prepare(
    "SELECT key, version, body FROM grants WHERE key >= ? || '.' AND key < ? || '/' ORDER BY random() LIMIT ?",
  )
  const grants = database.prepare(
    "SELECT key, version, body FROM grants WHERE instr(key, '.') = 0 ORDER BY key LIMIT ?",
  )
  const erase = database.prepare('DELETE FROM grants WHERE key = ?')
  const insert = database.prepare('INSERT OR IGNORE INTO grants VALUES (?, 1, ?)')
  const update = database.prepare(
    'UPDATE grants SET version = version + 1, body = ? WHERE key = ? AND version = ?',
  )
  const stored = ({ version, body }: Row) => ({ record: readGrant(body), version })
  return {
    async get(key) {
      const row = select.get(key) as Row | undefined
      return row === undefined ? { record: undefined, version: 0 } : stored(row)
    },
    async put(key, record, expected) {
      const text = grantText(record)
      const { changes } = expected === 0 ? insert.run(key, text) : update.run(text, key, expected)
      return changes === 0 ? undefined : expected + 1
    },
    async list(kind, limit = -1) {
      const rows = kind === 'grant' ? grants.all(limit) : ofKind.all(kind, kind, limit)
      return (rows as unknown as Row[]).map((row) => [row.key, stored(row)] as const)
    },
    async remove(key) {
      if (kindOfKey(key) !== 'grant') erase.run(key)
    },
    async close() {
      database.close()
    },
  }
}

/** The grants of users in a file, for one machine. Several processes may use it: each change is a transaction. */
import { chmodSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { makeFolder } from '../../ground/base/make-folder.ts'
import { type GrantStore, grantText, readGrant } from '../../ground/model/grants.ts'
import { busyMs } from './overflow.ts'

const table =
  'CREATE TABLE IF NOT EXISTS grants (key TEXT PRIMARY KEY, version INTEGER NOT NULL, body TEXT NOT NULL) STRICT'

type Row = { readonly key: string; readonly version: number; readonly body: string }

/** Creates the file if it does not exist (mode 0600). Throws if it cannot be used. */
export function openGrantFile(path: string): GrantStore {
  makeFolder(dirname(path))
  const database = new DatabaseSync(path, { timeout: busyMs })
  chmodSync(path, 0o600)
  database.exec(table)
  const select = database.prepare('SELECT key, version, body FROM grants WHERE key = ?')
  const all = database.prepare('SELECT key, version, body FROM grants ORDER BY key')
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
    async list() {
      return (all.all() as unknown as Row[]).map((row) => [row.key, stored(row)] as const)
    },
    async close() {
      database.close()
    },
  }
}

import { DatabaseSync } from 'node:sqlite'
import type { AnyCloudEvent } from '../../events/index.ts'

/** Writes a log file as versions before the packing of events have written it. */
export function writeVersion1(file: string, events: readonly AnyCloudEvent[]): void {
  const database = new DatabaseSync(file)
  database.exec(`
    PRAGMA journal_mode = WAL;
    BEGIN;
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
    PRAGMA application_id = ${0x53_4c_55_49};
    PRAGMA user_version = 1;
  `)
  const insert = database.prepare('INSERT INTO events VALUES (?, ?, ?, ?)')
  for (const [index, event] of events.entries()) {
    insert.run(index + 1, event.id, event.subject, JSON.stringify(event))
  }
  database.exec('COMMIT')
  database.close()
}

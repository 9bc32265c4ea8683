import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openDatabase } from '../../src/control/log/embedded-file.ts'
import { EventTables } from '../../src/control/log/event-tables.ts'
import { type EventLog, openEmbeddedLog } from '../../src/control/log/index.ts'
import { describeLog } from './log-contract.ts'

/** Packs every pair of events of a file, as another process would. */
function packAll(file: string): void {
  const database = openDatabase(file)
  const tables = new EventTables(database, { newestRows: 0, blockEvents: 2 })
  while (tables.isUntidy()) tables.tidy()
  database.close()
}

/** A log whose events are packed after each change. */
function packed(log: EventLog, file: string): EventLog {
  const append: EventLog['append'] = async (...input) => {
    const appended = await log.append(...input)
    packAll(file)
    return appended
  }
  const purgeUpTo: EventLog['purgeUpTo'] = async (position) => {
    await log.purgeUpTo(position)
    packAll(file)
  }
  const changing = { append, purgeUpTo }
  return new Proxy(log, {
    get(target, key: keyof EventLog) {
      if (key === 'append' || key === 'purgeUpTo') return changing[key]
      return target[key]?.bind(target)
    },
  })
}

describeLog('packed', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-log-'))
  const file = join(folder, 'events.db')
  const open = async () => packed(openEmbeddedLog(file).log, file)
  return { open, reopen: open, remove: async () => rmSync(folder, { recursive: true }) }
})

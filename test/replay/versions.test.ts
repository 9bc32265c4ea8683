/** Logs that earlier versions have written. `logs/version-1.db` has 128 events, and a snapshot at 50. */
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openEmbeddedLog, type Position, readEmbeddedLog } from '../../src/control/log/index.ts'
import { regexProblem } from '../../src/control/plane/api-binding.ts'
import { loadState } from '../../src/control/plane/stored-state.ts'
import { foldEvents, foldVersion, replay } from '../../src/past/replay/index.ts'

const derivation = { checkRegex: regexProblem }

let folder: string
let path: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-versions-'))
  path = join(folder, 'events.db')
  copyFileSync(join(import.meta.dirname, 'logs', 'version-1.db'), path)
})
afterEach(() => rmSync(folder, { recursive: true }))

function schemaVersion(): unknown {
  const database = new DatabaseSync(path, { readOnly: true })
  const found = database.prepare('PRAGMA user_version').get()
  database.close()
  return found?.user_version
}

describe('a log file of schema version 1', () => {
  it('is migrated when it is opened to be written, and still replays', async () => {
    const { log, movedAside } = openEmbeddedLog(path)
    expect(movedAside).toBeUndefined()
    expect(schemaVersion()).toBeGreaterThan(1)
    const all = await replay(log.read(), derivation)
    expect(all).toMatchObject({ events: 128, different: [], missing: 0 })
    expect(all.published).toBeGreaterThan(1)
    const snapshot = await loadState(log, await log.snapshots())
    expect(snapshot?.position).toBe(50)
    const later = log.read({ from: 51 as Position })
    const restored = await foldEvents(later, derivation, snapshot?.fold)
    expect(restored.statuses()).toEqual(all.fold.statuses())
    await log.saveSnapshot({ position: 128 as Position, foldVersion, chunks: [] })
    expect((await log.snapshots()).map(({ position }) => position)).toEqual([50, 128])
    await log.close()
  })

  it('is left as it is when it is only read', async () => {
    const log = readEmbeddedLog(path)
    expect(await log.lastPosition()).toBe(128)
    expect((await log.snapshots()).map(({ position }) => position)).toEqual([50])
    await log.close()
    expect(schemaVersion()).toBe(1)
  })
})

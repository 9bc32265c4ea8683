import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { routeApplied, routeSubject } from '../../../test/contract/events.ts'
import { writeVersion1 } from '../../../test/contract/version-1.ts'
import { waitFor } from '../../../test/support/wait-for.ts'
import { openEmbeddedLog, readEmbeddedLog } from './embedded.ts'
import { exportLine } from './export-lines.ts'
import type { EventLog, Position } from './log.ts'

let folder: string
let file: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-packing-'))
  file = join(folder, 'events.db')
})
afterEach(() => rmSync(folder, { recursive: true }))

const routes = (count: number) =>
  Array.from({ length: count }, (_, index) => routeApplied(`r${index}`))

const count = (table: string): number => {
  const database = new DatabaseSync(file)
  try {
    return Number(database.prepare(`SELECT count(*) AS rows FROM ${table}`).get()?.rows)
  } finally {
    database.close()
  }
}

const exported = async (log: EventLog) => {
  const lines: string[] = []
  for await (const recorded of log.read()) lines.push(exportLine(recorded))
  return lines.join('')
}

/** Appends events and waits until all that can be packed are. */
async function pack(log: EventLog, events = routes(1000)): Promise<void> {
  await log.append(events)
  await waitFor('packing', () => count('events') < 384)
}

describe('packing', () => {
  it('keeps the newest events as rows and needs less than 200 bytes for each older one', async () => {
    const { log } = openEmbeddedLog(file)
    await pack(log, routes(5000))
    await log.close()
    const database = new DatabaseSync(file)
    const pragma = (name: string) =>
      Number(Object.values(database.prepare(`PRAGMA ${name}`).get()!)[0])
    const used = (pragma('page_count') - pragma('freelist_count')) * pragma('page_size')
    database.close()
    const rows = count('events')
    expect(rows).toBeGreaterThanOrEqual(256)
    expect((used - rows * 2_000) / (5000 - rows)).toBeLessThan(200)
  })

  it('packs a large append at once, after the rows before it', async () => {
    const { log } = openEmbeddedLog(file)
    const events = routes(1500)
    await log.append(events.slice(0, 100))
    await log.append(events.slice(100))
    expect(count('events')).toBe(256)
    const ids: string[] = []
    for await (const { position, event } of log.read()) {
      expect(position).toBe(ids.push(event.id))
    }
    expect(ids).toEqual(events.map(({ id }) => id))
    const repeated = await log.append(events)
    expect(repeated.ok && repeated.value).toEqual(events.map((_, index) => index + 1))
    await log.close()
  })

  it('changes no byte of an export', async () => {
    const { log } = openEmbeddedLog(file)
    await log.append(routes(1000))
    const before = await exported(log)
    await pack(log, [])
    expect(count('blocks')).toBeGreaterThan(0)
    expect(await exported(log)).toBe(before)
    await log.close()
  })

  it('takes two events whose ids have the same hash for two events', async () => {
    const [one, other] = ['id-6355893', 'id-29997977'].map((id) => ({ ...routeApplied(id), id }))
    const { log } = openEmbeddedLog(file)
    await pack(log, [one!, ...routes(999)])
    expect(await log.append([other!])).toMatchObject({ value: [1001] })
    await pack(log, routes(2000).slice(1000))
    expect(await log.append([one!, other!])).toMatchObject({ value: [1, 1001] })
    await log.close()
  })

  it('keeps nothing of purged events', async () => {
    const { log } = openEmbeddedLog(file)
    await pack(log)
    const position = (await log.lastPosition()) as Position
    await log.saveSnapshot({ position, foldVersion: '1', chunks: [] })
    await log.purgeUpTo(position)
    await waitFor('removal', () => count('blocks') === 0)
    expect([count('events'), count('ids'), count('subjects')]).toEqual([0, 0, 0])
    await log.close()
  })

  it('reports a damaged block with its positions and the file, and reads the others', async () => {
    const { log } = openEmbeddedLog(file)
    await pack(log)
    await log.close()
    const database = new DatabaseSync(file)
    database.exec('UPDATE blocks SET body = zeroblob(100) WHERE first = 129')
    database.close()
    const reader = readEmbeddedLog(file)
    await expect(exported(reader)).rejects.toMatchObject({
      code: 'corrupt',
      message: expect.stringMatching(`${file} is damaged: the events at positions 129 to 256 `),
    })
    expect(await Array.fromAsync(reader.read({ from: 257 as Position }))).toHaveLength(744)
    await reader.close()
  })
})

describe('a file of schema version 1', () => {
  it('is read without a change', async () => {
    writeVersion1(file, routes(1000))
    const before = readFileSync(file)
    const log = readEmbeddedLog(file)
    const events = await Array.fromAsync(log.read())
    expect(events.map(({ event }) => event)).toEqual(routes(1000))
    await log.close()
    expect(readFileSync(file).equals(before)).toBe(true)
  })

  it('is packed while it is in use, and keeps events, ids and versions of subjects', async () => {
    writeVersion1(file, routes(1000))
    const { log } = openEmbeddedLog(file)
    await pack(log, [routeApplied('new')])
    expect(await log.append([routeApplied('r5')])).toMatchObject({ value: [6] })
    const expectedVersion = new Map([[routeSubject('r5'), 6 as Position]])
    expect(await log.append([routeApplied('r5', 2)], { expectedVersion })).toMatchObject({
      value: [1002],
    })
    const events = await Array.fromAsync(log.read())
    expect(events.slice(0, 1000).map(({ event }) => event)).toEqual(routes(1000))
    await log.close()
  })
})

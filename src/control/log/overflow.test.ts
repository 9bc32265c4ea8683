import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { routeApplied, routeSubject } from '../../../test/contract/events.ts'
import { eventually } from '../../../test/support/wait-for.ts'
import { openEmbeddedLog, readEmbeddedLog } from './embedded.ts'
import type { EventLog, Position } from './log.ts'

let folder: string
let file: string
let disk: DatabaseSync
let log: EventLog
let told: string[]

/** Makes every write of an event fail, as on a full disk. */
const fillDisk = () =>
  disk.exec(
    "CREATE TRIGGER full BEFORE INSERT ON events BEGIN SELECT RAISE(ABORT, 'disk is full'); END",
  )
const freeDisk = () => disk.exec('DROP TRIGGER full')

const open = () =>
  openEmbeddedLog(file, {
    began: (reason) => told.push(reason),
    ended: () => told.push('stored'),
  }).log

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-overflow-'))
  file = join(folder, 'events.db')
  told = []
  log = open()
  disk = new DatabaseSync(file)
  await log.append([routeApplied('a'), routeApplied('b')])
})
afterEach(async () => {
  await log.close()
  disk.close()
  rmSync(folder, { recursive: true })
})

const names = async (one: EventLog) =>
  (await Array.fromAsync(one.read())).map(({ event }) => event.subject.split('.').at(-1))

async function stored(): Promise<unknown> {
  const reader = readEmbeddedLog(file)
  const found = await names(reader)
  await reader.close()
  return found
}

describe('an embedded log whose file cannot be written', () => {
  it('continues in memory, and reports it once', async () => {
    const tailed: number[] = []
    const stop = new AbortController()
    const tail = (async () => {
      for await (const { position } of log.tail(1 as Position, stop)) tailed.push(position)
    })()
    fillDisk()
    expect(await log.append([routeApplied('c')])).toEqual({ ok: true, value: [3] })
    expect(await log.append([routeApplied('d'), routeApplied('a', 2)])).toMatchObject({
      value: [4, 5],
    })
    expect(await names(log)).toEqual(['a', 'b', 'c', 'd', 'a'])
    await eventually(() => expect(tailed).toEqual([1, 2, 3, 4, 5]))
    expect(told).toEqual([expect.stringContaining('disk is full')])
    expect(await stored()).toEqual(['a', 'b'])
    stop.abort()
    await tail
  })

  it('keeps its order, ids and expected versions across the file and memory', async () => {
    fillDisk()
    await log.append([routeApplied('a', 2)])
    const repeated = await log.append([routeApplied('b'), routeApplied('a', 2)])
    expect(repeated).toMatchObject({ value: [2, 3] })
    const expectedVersion = (name: string, position: number) => ({
      expectedVersion: new Map([[routeSubject(name), position as Position]]),
    })
    const stale = await log.append([routeApplied('a', 3)], expectedVersion('a', 1))
    expect(stale).toMatchObject({ problems: [{ reason: 'conflict', actual: 3 }] })
    const current = await log.append([routeApplied('b', 2)], expectedVersion('b', 2))
    expect(current).toMatchObject({ value: [4] })
    const ofA = await Array.fromAsync(log.read({ subject: routeSubject('a') }))
    expect(ofA.map(({ position }) => position)).toEqual([1, 3])
  })

  it('stores the events in memory once the file can be written', async () => {
    fillDisk()
    const many = Array.from({ length: 2_500 }, (_, index) => routeApplied(`m${index}`))
    for (const event of many) void log.append([event])
    expect(await log.append([routeApplied('c')])).toMatchObject({ value: [2_503] })
    freeDisk()
    await eventually(() => expect(told.at(-1)).toBe('stored'))
    await log.append([routeApplied('d')])
    const all = ['a', 'b', ...many.map((_, index) => `m${index}`), 'c', 'd']
    expect(await stored()).toEqual(all)
    expect(await names(log)).toEqual(all)
    expect(told).toHaveLength(2)
  })

  it('stores them when it is closed, if the file can be written by then', async () => {
    fillDisk()
    await log.append([routeApplied('c')])
    freeDisk()
    await log.close()
    log = open()
    expect(await names(log)).toEqual(['a', 'b', 'c'])
  })

  it('loses only them if it is closed before that', async () => {
    fillDisk()
    await log.append([routeApplied('c')])
    await log.close()
    freeDisk()
    log = open()
    expect(await names(log)).toEqual(['a', 'b'])
  })

  it('stores no snapshot of events that the file lacks, and purges nothing', async () => {
    fillDisk()
    await log.append([routeApplied('c')])
    await log.saveSnapshot({ position: 3 as Position, foldVersion: '1', chunks: [] })
    await log.purgeUpTo(2 as Position)
    expect(await log.snapshots()).toEqual([])
    expect(await log.firstPosition()).toBe(1)
  })

  it('rejects appends if no listener is given', async () => {
    await log.close()
    log = openEmbeddedLog(file).log
    fillDisk()
    await expect(log.append([routeApplied('c')])).rejects.toMatchObject({ code: 'storage' })
  })
})

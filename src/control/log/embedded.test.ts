import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { appendedBatch, routeApplied } from '../../../test/contract/events.ts'
import { expectWholeSnapshots } from '../../../test/contract/killed-saves.ts'
import { writeVersion1 } from '../../../test/contract/version-1.ts'
import { openEmbeddedLog, readEmbeddedLog } from './embedded.ts'

let folder: string
let file: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-embedded-'))
  file = join(folder, 'state', 'events.db')
})
afterEach(() => rmSync(folder, { recursive: true }))

async function fill(count: number): Promise<void> {
  const { log } = openEmbeddedLog(file)
  await log.append(Array.from({ length: count }, (_, index) => routeApplied(`r${index}`)))
  await log.close()
}

/** Writes a log that is too large to be checked each time. */
async function fillLarge(): Promise<void> {
  const padding = 'x'.repeat(1_000_000)
  const { log } = openEmbeddedLog(file)
  await log.append(Array.from({ length: 40 }, (_, index) => routeApplied(`r${index}`, 1, padding)))
  await log.close()
}

async function subjects(): Promise<string[]> {
  const { log } = openEmbeddedLog(file)
  const list: string[] = []
  for await (const { event } of log.read()) list.push(event.subject.split('.').at(-1)!)
  await log.close()
  return list
}

describe('the file of the embedded log', () => {
  it('is readable only by its owner, and so are the files next to it', async () => {
    const { log } = openEmbeddedLog(file)
    await log.append([routeApplied('a')])
    const files = readdirSync(join(folder, 'state'))
    expect(files).toContain('events.db-wal')
    for (const name of files) {
      expect(statSync(join(folder, 'state', name)).mode & 0o777).toBe(0o600)
    }
    await log.close()
  })

  it('is moved aside if it is truncated, and a new log takes its place', async () => {
    await fill(500)
    truncateSync(file, statSync(file).size - 6000)
    const damaged = readFileSync(file)
    const { log, movedAside } = openEmbeddedLog(file)
    expect(movedAside?.path).toBe(`${file}.corrupt-1`)
    expect(movedAside?.reason).not.toBe('')
    expect(readFileSync(`${file}.corrupt-1`).equals(damaged)).toBe(true)
    expect(await log.lastPosition()).toBe(0)
    expect((await log.append([routeApplied('a')])).ok).toBe(true)
    expect(statSync(file).mode & 0o777).toBe(0o600)
    await log.close()
  })

  it('is moved aside under a new name each time if it is not a database', async () => {
    for (const number of [1, 2]) {
      await fill(1)
      writeFileSync(file, 'this is not a database, and it is long enough to be seen as none')
      const { log, movedAside } = openEmbeddedLog(file)
      expect(movedAside?.path).toBe(`${file}.corrupt-${number}`)
      await log.close()
    }
  })

  it('is moved aside if pages in its middle are overwritten', async () => {
    await fill(500)
    const bytes = readFileSync(file)
    bytes.fill(0xa5, 8192, 8192 + 40_960)
    writeFileSync(file, bytes)
    const { log, movedAside } = openEmbeddedLog(file)
    expect(movedAside).toBeDefined()
    await log.close()
  })

  it('is checked as a whole if it is small, or after damage was found', async () => {
    await fillLarge()
    const handle = openSync(file, 'r+')
    writeSync(handle, Buffer.alloc(65_536, 0xa5), 0, 65_536, 20_000_000)
    closeSync(handle)
    const unchecked = openEmbeddedLog(file)
    expect(unchecked.movedAside).toBeUndefined()
    await expect(Array.fromAsync(unchecked.log.read())).rejects.toMatchObject({ code: 'corrupt' })
    await unchecked.log.close()
    const checked = openEmbeddedLog(file)
    expect(checked.movedAside?.path).toBe(`${file}.corrupt-1`)
    expect(existsSync(`${file}.damaged`)).toBe(false)
    await checked.log.close()
  })

  it('is moved aside at once if it is large and truncated', async () => {
    await fillLarge()
    truncateSync(file, statSync(file).size - 4096)
    const { log: fresh, movedAside } = openEmbeddedLog(file)
    expect(movedAside?.path).toBe(`${file}.corrupt-1`)
    await fresh.close()
  })

  it('is not moved by a reader, which reports damaged and missing events', async () => {
    const read = async () => {
      const log = readEmbeddedLog(file)
      try {
        return await Array.fromAsync(log.read())
      } finally {
        await log.close()
      }
    }
    await fill(500)
    const whole = readFileSync(file)
    expect(await read()).toHaveLength(500)
    const database = new DatabaseSync(file)
    database.exec('DELETE FROM events WHERE position = 300')
    database.close()
    await expect(read()).rejects.toThrow('the event at position 300 is missing')
    writeFileSync(file, whole.fill(0xa5, 8192, 8192 + 40_960))
    await expect(read()).rejects.toThrow(expect.objectContaining({ code: 'corrupt' }))
    expect(readdirSync(join(folder, 'state')).filter((name) => name.includes('corrupt'))).toEqual(
      [],
    )
  })

  it.skipIf(process.getuid?.() === 0)('can be read from a read-only folder', async () => {
    await fill(3)
    chmodSync(file, 0o444)
    chmodSync(join(folder, 'state'), 0o555)
    const log = readEmbeddedLog(file)
    expect(await Array.fromAsync(log.read())).toHaveLength(3)
    await log.close()
    chmodSync(join(folder, 'state'), 0o755)
  })

  it("is not changed if it is another program's database", () => {
    const foreign = join(folder, 'other.db')
    const database = new DatabaseSync(foreign)
    database.exec('CREATE TABLE notes (text TEXT)')
    database.close()
    expect(() => openEmbeddedLog(foreign)).toThrow(expect.objectContaining({ code: 'foreign' }))
    expect(existsSync(`${foreign}.corrupt-1`)).toBe(false)
  })

  it('is not changed if a newer version wrote it', async () => {
    await fill(1)
    const database = new DatabaseSync(file)
    database.exec('PRAGMA user_version = 99')
    database.close()
    expect(() => openEmbeddedLog(file)).toThrow(/newer version \(99\)/)
  })

  it('is named in the error if its folder cannot be created', () => {
    writeFileSync(join(folder, 'state'), '')
    expect(() => openEmbeddedLog(file)).toThrow(file)
  })

  it('can be read by a second process while the first appends', async () => {
    const { log } = openEmbeddedLog(file)
    await log.append([routeApplied('a')])
    expect(await subjects()).toEqual(['a'])
    await log.append([routeApplied('b')])
    expect(await subjects()).toEqual(['a', 'b'])
    await log.close()
  })
})

describe('a process that is killed during appends', () => {
  it('leaves only complete batches, and every acknowledged one', async () => {
    for (const round of [1, 2, 3]) await expectWholeBatches(await appendUntilKilled(10 * round))
  })

  it('loses nothing of a file of version 1, which it was packing', async () => {
    const batches = Array.from({ length: 300 }, (_, batch) => appendedBatch(batch)).flat()
    mkdirSync(join(folder, 'state'))
    writeVersion1(file, batches)
    for (const round of [1, 2, 3]) await expectWholeBatches(await appendUntilKilled(10 * round))
    const database = new DatabaseSync(file)
    const packed = Number(database.prepare('SELECT max(last) AS last FROM blocks').get()?.last)
    database.close()
    expect(packed).toBeGreaterThan(0)
  })
})

describe('a process that is killed while it saves snapshots', () => {
  it('leaves only whole snapshots, and every acknowledged one', async () => {
    await expectWholeSnapshots(file, async () => openEmbeddedLog(file).log)
  })
})

async function expectWholeBatches(acknowledged: number): Promise<void> {
  const list = await subjects()
  expect(list.length % 10).toBe(0)
  expect(list.length).toBeGreaterThanOrEqual((acknowledged + 1) * 10)
  expect(list).toEqual(Array.from(list, (_, index) => `b${Math.floor(index / 10)}-${index % 10}`))
}

/** Lets a child append until it has acknowledged `batches` more, kills it, gives the last one. */
async function appendUntilKilled(batches: number): Promise<number> {
  const script = join(import.meta.dirname, '../../../test/contract/append-forever.ts')
  const child = spawn(process.execPath, ['--no-warnings', script, file], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exited = once(child, 'exit')
  let seen = 0
  let last = -1
  for await (const line of createInterface({ input: child.stdout })) {
    last = Number(line)
    if (++seen === batches) child.kill('SIGKILL')
  }
  expect((await exited)[1]).toBe('SIGKILL')
  return last
}

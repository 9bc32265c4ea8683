import { randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, describe, expect, it } from 'vitest'
import { isExport, joinSnapshot, readExport, snapshotLines } from './export.ts'
import { exportLine, type SnapshotPart } from './export-lines.ts'
import type { Position } from './log.ts'

const recorded = join(import.meta.dirname, '../../../examples/quickstart/recorded.jsonl')
const lines = readFileSync(recorded, 'utf8').trim().split('\n')
const folder = mkdtempSync(join(tmpdir(), 'sluice-export-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

function file(...content: readonly string[]): string {
  const path = join(folder, 'log.jsonl')
  writeFileSync(path, content.join('\n'))
  return path
}

const read = (...content: readonly string[]) => Array.fromAsync(readExport(file(...content)))
const changed = (change: (line: { event: Record<string, unknown> }) => void): string => {
  const line = JSON.parse(lines[2] ?? '')
  change(line)
  return JSON.stringify(line)
}

describe('an exported log', () => {
  it('is recognized however its JSON is formatted, and nothing else is', () => {
    const { position, event } = JSON.parse(lines[0] ?? '')
    for (const line of [
      { position, event },
      { event, position },
    ]) {
      expect(isExport(file(JSON.stringify(line)))).toBe(true)
      expect(
        isExport(file(`\uFEFF${JSON.stringify(line, undefined, ' ').replace(/\n/g, '')}`)),
      ).toBe(true)
    }
    const newer = { position: 1, event: { ...event, type: 'dev.sluice.future.v9' } }
    expect(isExport(file(JSON.stringify(newer)))).toBe(true)
    for (const text of [
      '',
      'kind: Gateway',
      '{"position":1}',
      'null',
      '{"position":0,"event":{}}',
    ]) {
      expect(isExport(file(text))).toBe(false)
    }
  })

  it('may have the line ends, blank lines and byte order mark of other tools', async () => {
    expect(await read(`\uFEFF${lines.join('\r\n\r\n')}`)).toHaveLength(lines.length)
  })

  it('may be compressed with gzip, and damage in it is refused with the file', async () => {
    const path = join(folder, 'log.jsonl.gz')
    const packed = gzipSync(lines.join('\n'))
    writeFileSync(path, packed)
    expect(isExport(path)).toBe(true)
    expect(await Array.fromAsync(readExport(path))).toEqual(await read(...lines))
    writeFileSync(path, packed.subarray(0, packed.length - 30))
    await expect(Array.fromAsync(readExport(path))).rejects.toThrow(
      `${path} cannot be decompressed`,
    )
  })

  it('has no line longer than an event may be, however well it is compressed', async () => {
    const path = join(folder, 'long.jsonl.gz')
    writeFileSync(path, gzipSync(Buffer.alloc(1 << 24, 'x')))
    await expect(Array.fromAsync(readExport(path))).rejects.toThrow('has a line of more than')
  })

  it.each([
    ['a truncated line', [lines[0], '{"position":2,"ev'], ':2 is not an event of a log'],
    ['lines in the wrong order', [lines[1], lines[0]], ':2 is not in its place: position 1'],
    ['a repeated line', [lines[0], lines[0]], ':2 is not in its place: position 1'],
    [
      'an event of a newer version',
      [changed(({ event }) => Object.assign(event, { type: 'dev.sluice.future.v9' }))],
      'dev.sluice.future.v9 is unknown; the log was written by a newer version',
    ],
    [
      'an event without its data',
      [changed(({ event }) => Object.assign(event, { data: {} }))],
      'event.data.kind is missing',
    ],
    [
      'an event that is not an object',
      [changed((line) => Object.assign(line, { event: 1 }))],
      'no object',
    ],
  ])('with %s is refused with file and line', async (_, content, message) => {
    await expect(read(...content.map(String))).rejects.toThrow(message)
    await expect(read(...content.map(String))).rejects.toThrow(/log\.jsonl:\d/)
  })
})

describe('a line of an export', () => {
  it('has no credentials of the manifests that a pin holds', () => {
    const name = 'pin-set.v1.json'
    const sample = readFileSync(join(import.meta.dirname, '../../../events/samples', name), 'utf8')
    const event = JSON.parse(sample)
    const header = { name: 'authorization', value: 'Bearer of-the-backend' }
    event.data.objects[0].version.object.spec.set = [header]
    const line = exportLine({ position: 7 as Position, event })
    expect(line).toContain('"redacted":true')
    expect(line).not.toContain('of-the-backend')
    expect(exportLine({ position: 7 as Position, event: JSON.parse(sample) })).not.toContain(
      'redacted',
    )
  })
})

describe('a snapshot in an export', () => {
  const state = (bytes: Uint8Array, position = 2) =>
    snapshotLines({ position: position as Position, foldVersion: '7', chunks: [bytes] })
  const readParts = async (...content: readonly string[]) => {
    const parts: SnapshotPart[] = []
    const events = await Array.fromAsync(readExport(file(...content), (part) => parts.push(part)))
    return { events, parts }
  }

  it('follows the event of its position in several lines, and does not change the events', async () => {
    const text = JSON.stringify({ state: randomBytes(1_000_000).toString('base64') })
    const bytes = Buffer.from(text)
    const snapshot = await state(bytes)
    expect(snapshot.length).toBeGreaterThan(1)
    const content = [
      ...lines.slice(0, 2),
      ...snapshot.map((line) => line.trim()),
      ...lines.slice(2),
    ]
    const { events, parts } = await readParts(...content)
    expect(events).toEqual(await read(...lines))
    const { position, foldVersion, chunks } = await joinSnapshot(parts)
    expect({ position, foldVersion }).toEqual({ position: 2, foldVersion: '7' })
    expect(Buffer.concat(chunks).equals(bytes)).toBe(true)
    expect(isExport(file(...snapshot))).toBe(true)
  })

  it('contains no credentials that headers of the configuration set', async () => {
    const header = { name: 'Authorization', value: 'Bearer CANARY' }
    const snapshot = await state(Buffer.from(JSON.stringify({ actors: [{ set: [header] }] })))
    const { parts } = await readParts(...lines.slice(0, 2), ...snapshot)
    const { chunks } = await joinSnapshot(parts)
    const stored: unknown = JSON.parse(Buffer.concat(chunks).toString())
    expect(stored).toEqual({ actors: [{ set: [{ ...header, value: '<redacted>' }] }] })
  })

  it('is refused if it is out of order, malformed, or not whole', async () => {
    const [line = ''] = await state(Buffer.from('{}'))
    await expect(readParts(...lines.slice(0, 3), line)).rejects.toThrow(
      'log.jsonl:4 is not in its place: position 2 stands behind position 3',
    )
    await expect(readParts(line, ...lines.slice(0, 2))).rejects.toThrow('is not in its place')
    for (const wrong of ['"position":0', '"parts":0', '"part":2', '"gzip":1']) {
      const name = wrong.slice(0, wrong.indexOf(':'))
      const changed = line.replace(new RegExp(`${name}:("[^"]*"|\\d+)`), wrong)
      await expect(readParts(changed)).rejects.toThrow('log.jsonl:1 is not a part of a snapshot')
    }
    const { parts } = await readParts(line)
    for (const damaged of [[], parts.map((part) => ({ ...part, gzip: 'AAAA' }))]) {
      await expect(joinSnapshot(damaged)).rejects.toMatchObject({ code: 'corrupt' })
    }
  })
})

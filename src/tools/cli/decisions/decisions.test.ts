import { mkdirSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import { useFolder } from '../../../../test/support/fixture.ts'
import { writeDecisionFiles } from '../../../../test/support/written-decisions.ts'
import { closeFrame, frameBytes } from '../../../past/decisions/frame.ts'
import { UsageError } from '../shared/output.ts'
import { type DecisionsOptions, decisions } from './decisions.ts'

const root = useFolder('sluice-decisions-')
const folder = join(root, 'records')
const file = join(folder, 'worker-0-0000000001.decisions')

beforeEach(() => rmSync(folder, { recursive: true, force: true }))

/** Runs the command on the folder. */
async function run(options: Partial<DecisionsOptions> = {}) {
  const lines: string[] = []
  const reported: string[] = []
  const output = {
    print: (text: string) => void lines.push(text),
    report: (text: string) => void reported.push(text),
  }
  const code = await decisions({ recordDir: folder, output: 'text', ...options }, output)
  return { code, lines, reported }
}

describe('sluice decisions', () => {
  it('prints one JSON object per line', async () => {
    await writeDecisionFiles(folder, [[{ id: 'a' }, { id: 'b', status: 200 }]])
    const { code, lines, reported } = await run({ output: 'json' })
    expect(code).toBe(0)
    expect(reported).toEqual([])
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      { id: 'a', worker: 0, response: { status: 403 } },
      { id: 'b', response: { status: 200 } },
    ])
  })

  it('escapes control characters in text', async () => {
    await writeDecisionFiles(folder, [[{ id: 'a', path: '/\u001b[2J\n' }]])
    const { lines } = await run()
    expect(lines).toHaveLength(1)
    expect(lines[0]).toContain('/\\u001b[2J\\u000a')
  })

  it('selects records by all conditions together', async () => {
    await writeDecisionFiles(folder, [
      [{ id: 'a' }, { id: 'b', status: 404 }, { id: 'a', status: 200 }],
    ])
    const ids = async (options: Partial<DecisionsOptions>) => {
      const { lines } = await run({ ...options, output: 'json' })
      return lines.map((line) => JSON.parse(line).id).join(' ')
    }
    expect(await ids({ id: 'a' })).toBe('a a')
    expect(await ids({ id: 'a', status: '4xx' })).toBe('a')
    expect(await ids({ status: '4XX', route: 'default/shop' })).toBe('a b')
    expect(await ids({ since: '2100-01-01' })).toBe('')
    expect(await ids({ since: '1m' })).toBe('a b a')
  })

  it('stops when the reader of its output is gone', async () => {
    await writeDecisionFiles(folder, [[{ id: 'a' }, { id: 'b' }, { id: 'c' }]])
    const lines: string[] = []
    const output = {
      print: (text: string) => void lines.push(text),
      report: () => undefined,
      ready: async () => lines.length < 2,
    }
    expect(await decisions({ recordDir: folder, output: 'text' }, output)).toBe(0)
    expect(lines).toHaveLength(2)
  })

  it('exits with 1 if no record is selected', async () => {
    await writeDecisionFiles(folder, [[{ id: 'a' }]])
    expect(await run({ id: 'b' })).toEqual({ code: 1, lines: [], reported: [] })
    expect((await run({ route: 'default/other' })).code).toBe(1)
  })

  it('names the file and offset of a block that is cut off, and prints the others', async () => {
    await writeDecisionFiles(folder, [[{ id: 'a' }], [{ id: 'b' }]])
    truncateSync(file, readFileSync(file).length - 1)
    const { code, lines, reported } = await run({ output: 'json' })
    expect(code).toBe(0)
    expect(lines.map((line) => JSON.parse(line).id)).toEqual(['b'])
    expect(reported).toEqual([`${file}: offset 0: the block is cut off`])
  })

  it('exits with 2 if only a damaged part may have the id, and with 0 if another part has it', async () => {
    await writeDecisionFiles(folder, [[{ id: 'a' }], [{ id: 'b' }]])
    truncateSync(file, readFileSync(file).length - 1)
    const reported = [`${file}: offset 0: the block is cut off`]
    expect(await run({ id: 'a' })).toEqual({ code: 2, lines: [], reported })
    expect(await run({ id: 'b' })).toMatchObject({ code: 0, reported })
  })

  it('names a block of another version', async () => {
    await writeDecisionFiles(folder, [[{ id: 'a' }]])
    const bytes = readFileSync(file)
    const version = bytes.indexOf(Buffer.of(8, 2), frameBytes)
    bytes[version + 1] = 9
    closeFrame(bytes, bytes.length)
    writeFileSync(file, bytes)
    const { code, reported } = await run()
    expect(code).toBe(2)
    expect(reported).toEqual([
      `${file}: offset 0: the block has version 9 of the format; this version of Sluice reads 1 and 2`,
    ])
  })

  it('names a block whose checksum differs, and a file that cannot be read', async () => {
    await writeDecisionFiles(folder, [[{ id: 'a' }], [{ id: 'b' }]])
    const bytes = readFileSync(file)
    bytes[bytes.length - 1] = ~(bytes.at(-1) ?? 0)
    writeFileSync(file, bytes)
    const other = join(folder, readdirSync(folder)[1] ?? '')
    rmSync(other)
    mkdirSync(other)
    const { code, reported } = await run()
    expect(code).toBe(2)
    expect(reported[0]).toBe(`${file}: offset 0: the checksum of the block differs`)
    expect(reported[1]).toContain(`${other}: offset 0: EISDIR`)
  })

  it('summarizes problems if there are many', async () => {
    await writeDecisionFiles(folder, [[{ id: 'a' }]])
    const block = readFileSync(file)
    const parts = Array.from({ length: 30 }, () => [Buffer.from('gap'), block]).flat()
    writeFileSync(file, Buffer.concat(parts))
    const { lines, reported } = await run()
    expect(lines).toHaveLength(30)
    expect(reported).toHaveLength(21)
    expect(reported.at(-1)).toBe('10 more parts cannot be read')
  })

  it.each([
    ['no source', { recordDir: undefined }, 'name either --record-dir or --nats'],
    ['two sources', { nats: 'nats://127.0.0.1' }, 'name either --record-dir or --nats'],
    ['a folder that does not exist', {}, 'does not exist'],
    ['a file as the folder', { recordDir: import.meta.filename }, 'is not a folder'],
    ['an invalid status', { status: '4x' }, '--status 4x'],
    ['an invalid route', { route: 'shop' }, '--route shop is not NAMESPACE/NAME'],
    ['an invalid time', { since: 'yesterday' }, '--since yesterday'],
  ])('refuses %s', async (_, options, message) => {
    const failed = await run(options).catch((error: unknown) => error)
    expect(failed).toBeInstanceOf(UsageError)
    expect(String(failed)).toContain(message)
  })
})

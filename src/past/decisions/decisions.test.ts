import {
  appendFileSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  openDecisionLog,
  writeDecision,
  writeDecisionFiles,
} from '../../../test/support/written-decisions.ts'
import type { DecisionLog } from './decision-log.ts'
import { blockFields, decisionFields, noteFields } from './fields.ts'
import { type ReadProblem, readFolder } from './read.ts'
import type { RecordedDecision } from './record.ts'
import { decisionFiles, FileRing } from './ring.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-decisions-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

/** Writes one decision; false if it is lost. */
const write = (log: DecisionLog, id: string, path?: string): boolean =>
  writeDecision(log, { id, ...(path !== undefined && { path }) })

const openRing = (mostBytes = 1 << 20) => new FileRing({ folder, name: 'worker-2', mostBytes })

async function flushed(log: DecisionLog, ring: FileRing): Promise<void> {
  log.flush()
  await ring.idle()
}

function readAll(): { decisions: RecordedDecision[]; problems: ReadProblem[] } {
  const decisions: RecordedDecision[] = []
  const problems: ReadProblem[] = []
  for (const result of readFolder(folder)) {
    if ('decision' in result) decisions.push(result.decision)
    else problems.push(result.problem)
  }
  return { decisions, problems }
}

describe('the files of decisions', () => {
  it('return the decisions that were written', async () => {
    const ring = openRing()
    const log = openDecisionLog(ring, () => Date.UTC(2026, 10, 23, 14, 2))
    write(log, 'a')
    write(log, 'b', '/größe')
    await flushed(log, ring)
    const { decisions, problems } = readAll()
    expect(problems).toEqual([])
    expect(decisions.map(({ id }) => id)).toEqual(['a', 'b'])
    expect(decisions[1]).toMatchObject({
      time: '2026-11-23T14:01:59.998Z',
      proxy: 'edge-1',
      worker: 2,
      position: 2 ** 40,
      request: { method: 'GET', path: '/größe', protocol: 'HTTP/2', source: '[::1]:4711' },
      route: { route: 'HTTPRoute default/shop', rule: 0 },
      response: { status: 403 },
    })
  })

  it('keep all decisions over many restarts, as long as they fit', async () => {
    for (let restart = 0; restart < 12; restart++) {
      const ring = openRing(80_000)
      const log = openDecisionLog(ring)
      write(log, `${restart}`)
      await flushed(log, ring)
      await ring.close()
    }
    expect(readAll().decisions.map(({ id }) => id)).toEqual(
      Array.from({ length: 12 }, (_, restart) => `${restart}`),
    )
  })

  it('keep their bound over restarts by losing the oldest decisions', async () => {
    for (let restart = 0; restart < 20; restart++) {
      const ring = openRing(80_000)
      const log = openDecisionLog(ring)
      for (let at = 0; at < 20; at++) write(log, `${restart}`, `/${'x'.repeat(400)}`)
      await flushed(log, ring)
      await ring.close()
    }
    const { decisions } = readAll()
    expect(decisions.at(-1)?.id).toBe('19')
    expect(decisions[0]?.id).not.toBe('0')
    const bytes = decisionFiles(folder).map((file) => statSync(join(folder, file)).size)
    expect(bytes.reduce((sum, one) => sum + one, 0)).toBeLessThanOrEqual(80_000)
  })

  it('keep their bound by losing the oldest decisions', async () => {
    const ring = openRing(80_000)
    const log = openDecisionLog(ring)
    for (let round = 0; round < 60; round++) {
      for (let at = 0; at < 10; at++) write(log, `${round}`, `/${'x'.repeat(400)}`)
      await flushed(log, ring)
    }
    const sizes = decisionFiles(folder).map((name) => statSync(join(folder, name)).size)
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(80_000 + 8 * 5_000)
    const { decisions } = readAll()
    expect(decisions.at(-1)?.id).toBe('59')
    expect(Number(decisions[0]?.id)).toBeGreaterThan(30)
  })

  it('mark decisions that are cut because their texts are too long, and keep the others whole', async () => {
    const ring = openRing()
    const log = openDecisionLog(ring)
    write(log, 'long path', `/${'x'.repeat(9_000)}`)
    const block = log.block()
    if (block === undefined) throw new Error('there is no room')
    const host = block.shared(blockFields.texts, 'é'.repeat(5_000))
    const at = block.begin(blockFields.decisions)
    block.text(decisionFields.id, 'many notes')
    block.uint(decisionFields.host, host)
    for (let note = 0; note < 100; note++) {
      const start = block.begin(decisionFields.notes)
      block.text(noteFields.text, 'n'.repeat(8_000))
      block.end(start)
    }
    block.flag(decisionFields.isCut, block.isCut)
    block.end(at)
    write(log, 'short')
    await flushed(log, ring)
    const { decisions, problems } = readAll()
    expect(problems).toEqual([])
    expect(decisions.map(({ id }) => id)).toEqual(['long path', 'many notes', 'short'])
    expect(decisions[0]?.request.path).toBe(`/${'x'.repeat(8_191)}`)
    expect(decisions[1]).toMatchObject({ isCut: true, request: { host: 'é'.repeat(4_096) } })
    expect(decisions[2]?.isCut).toBeUndefined()
  })

  it('use a new file after a restart and keep the old ones', async () => {
    for (const id of ['before', 'after']) {
      const ring = openRing()
      const log = openDecisionLog(ring)
      write(log, id)
      await flushed(log, ring)
      await ring.close()
    }
    expect(decisionFiles(folder)).toHaveLength(2)
    expect(readAll().decisions.map(({ id }) => id)).toEqual(['before', 'after'])
  })

  it('lose only a block that was cut off by a crash', async () => {
    const ring = openRing()
    const log = openDecisionLog(ring)
    write(log, 'a')
    await flushed(log, ring)
    write(log, 'b')
    await flushed(log, ring)
    const [name = ''] = decisionFiles(folder)
    const file = join(folder, name)
    truncateSync(file, statSync(file).size - 3)
    const { decisions, problems } = readAll()
    expect(decisions.map(({ id }) => id)).toEqual(['a'])
    expect(problems).toEqual([
      { file, offset: expect.any(Number), message: 'the block is cut off' },
    ])
  })

  it('are still read after a damaged part', async () => {
    const ring = openRing()
    const log = openDecisionLog(ring)
    write(log, 'a')
    await flushed(log, ring)
    const [name = ''] = decisionFiles(folder)
    const file = join(folder, name)
    const whole = readFileSync(file)
    appendFileSync(file, 'SLD1 but no block')
    appendFileSync(file, whole)
    const { decisions, problems } = readAll()
    expect(decisions.map(({ id }) => id)).toEqual(['a', 'a'])
    expect(problems).toHaveLength(1)
    expect(problems[0]?.offset).toBe(whole.length)
  })

  it('are merged by the end of the requests if there are several rings', async () => {
    const at = (id: string, startedMs: number, durationMs = 1) => ({ id, startedMs, durationMs })
    const lists = [
      [at('a', 0), at('d', 30), at('e', 10, 40)],
      [at('b', 10), at('c', 20), at('f', 60)],
    ]
    await writeDecisionFiles(folder, lists, () => 1e12)
    expect(
      readAll()
        .decisions.map(({ id }) => id)
        .join(''),
    ).toBe('abcdef')
  })

  it('are read in linear time if a damaged file has many marks', () => {
    const block = Buffer.alloc(16)
    block.write('SLD1')
    block.writeUInt32LE(1 << 20, 4)
    writeFileSync(join(folder, 'worker-2-0000000001.decisions'), Buffer.alloc(4 << 20, block))
    const { decisions, problems } = readAll()
    expect(decisions).toEqual([])
    expect(problems).toHaveLength(1)
  })
})

describe('a log of decisions', () => {
  it('loses and counts decisions while its sink is busy, and accepts more afterwards', () => {
    const written: Buffer[] = []
    let finish: (() => void) | undefined
    const log = openDecisionLog({
      get isBusy() {
        return finish !== undefined
      },
      idle: () => Promise.resolve(),
      append(bytes, length, done) {
        finish = () => {
          finish = undefined
          written.push(Buffer.from(bytes.subarray(0, length)))
          done(true)
        }
      },
    })
    let count = 0
    while (write(log, 'x', `/${'y'.repeat(4_000)}`)) count++
    expect(log.lost).toBe(1)
    expect(count).toBeGreaterThan(50)
    finish?.()
    expect(write(log, 'z')).toBe(true)
    expect(log.lost).toBe(1)
  })

  it('ends with the decisions that came while the block before them was being written', async () => {
    const ring = openRing()
    const log = openDecisionLog(ring)
    write(log, 'a')
    log.flush()
    expect(ring.isBusy).toBe(true)
    write(log, 'b')
    await log.end()
    await ring.close()
    expect(readAll().decisions.map(({ id }) => id)).toEqual(['a', 'b'])
  })

  it('counts the decisions of a block that the disk refuses', async () => {
    const ring = openRing()
    rmSync(folder, { recursive: true })
    const log = openDecisionLog(ring)
    write(log, 'a')
    write(log, 'b')
    await flushed(log, ring)
    expect(log.lost).toBe(2)
    expect(ring.problem).toContain('ENOENT')
  })
})

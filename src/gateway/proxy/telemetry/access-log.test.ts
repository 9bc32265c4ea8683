import { spawn } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { eventually } from '../../../../test/support/wait-for.ts'
import { AccessLog } from './access-log.ts'
import { createOutputLock, OutputLock } from './output-lock.ts'

const write = (log: AccessLog, line: string) => {
  log.begin().text(line)
  log.end()
}

describe('AccessLog', () => {
  let folder = ''
  let fd = -1
  const read = () => readFileSync(join(folder, 'log'), 'utf8')

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'sluice-access-log-'))
    fd = openSync(join(folder, 'log'), 'a')
  })
  afterEach(() => {
    closeSync(fd)
    rmSync(folder, { recursive: true })
  })

  it('writes a single line after a short time without a flush', async () => {
    const log = new AccessLog({ fd })
    write(log, 'one\n')
    await eventually(() => expect(read()).toBe('one\n'))
    await log.close()
  })

  it('keeps the order and loses no line over many batches', async () => {
    const log = new AccessLog({ fd })
    const lines = Array.from({ length: 5_000 }, (_, at) => `line ${at} ${'x'.repeat(at % 300)}\n`)
    for (const line of lines) write(log, line)
    await log.close()
    expect(read()).toBe(lines.join(''))
    expect(log.droppedLines).toBe(0)
  })

  it('writes every line in order while buffers are reused', async () => {
    const log = new AccessLog({ fd })
    let expected = ''
    for (let round = 0; round < 40; round++) {
      // Some rounds fill several batches before any is written, others wait until all are.
      for (let at = 0; at < 300 * (1 + (round % 4)); at++) {
        const line = `line ${round} ${at} ${'x'.repeat(300)}\n`
        expected += line
        write(log, line)
      }
      if (round % 2 === 0) await log.flush()
    }
    await log.close()
    expect(read() === expected).toBe(true)
  })

  it('writes lines of all sizes, larger than a batch too, and drops a line that was not ended', async () => {
    const log = new AccessLog({ fd })
    const lines = [1, 70_000, 20_000, 60_000, 1, 300_000, 5].map((size) => `${'é'.repeat(size)}\n`)
    for (const line of lines) {
      log.begin().text('not ended')
      write(log, line)
    }
    log.begin().text('not ended')
    await log.close()
    expect(read()).toBe(lines.join(''))
  })

  it('writes remaining lines synchronously on flushSync', async () => {
    const log = new AccessLog({ fd })
    write(log, 'last\n')
    log.flushSync()
    expect(read()).toBe('last\n')
    await log.close()
  })

  it('writes complete lines to a pipe that several writers share', async () => {
    const fifo = join(folder, 'pipe')
    await new Promise((resolve) => spawn('mkfifo', [fifo]).once('exit', resolve))
    const reader = spawn('cat', [fifo], { stdio: ['ignore', 'pipe', 'inherit'] })
    const writers = [openSync(fifo, 'w'), openSync(fifo, 'w')]
    const cells = createOutputLock()
    const logs = writers.map(
      (writer, name) => new AccessLog({ fd: writer, lock: new OutputLock(cells, name) }),
    )
    let out = ''
    reader.stdout.setEncoding('utf8').on('data', (chunk) => {
      out += chunk
    })
    const line = (name: number, at: number) => `${name} ${at} ${'y'.repeat((at * 7) % 500)}.\n`
    for (let at = 0; at < 2_000; at++) {
      logs.forEach((log, name) => {
        write(log, line(name, at))
      })
    }
    await Promise.all(logs.map((log) => log.close()))
    for (const writer of writers) closeSync(writer)
    await new Promise((resolve) => reader.once('close', resolve))
    for (const name of [0, 1]) {
      const own = out.split('\n').filter((found) => found.startsWith(`${name} `))
      expect(own).toEqual(Array.from({ length: 2_000 }, (_, at) => line(name, at).trimEnd()))
    }
  })

  it('counts dropped lines once the reader has gone, and does not fail', async () => {
    const fifo = join(folder, 'pipe')
    await new Promise((resolve) => spawn('mkfifo', [fifo]).once('exit', resolve))
    const reader = spawn('head', ['-c', '1', fifo], { stdio: 'ignore' })
    const writer = openSync(fifo, 'w')
    const log = new AccessLog({ fd: writer })
    write(log, 'seen\n')
    await new Promise((resolve) => reader.once('exit', resolve))
    await eventually(() => {
      write(log, 'lost\n')
      expect(log.droppedLines).toBeGreaterThan(0)
    })
    await log.close()
    closeSync(writer)
  })
})

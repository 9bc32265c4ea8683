import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { startProgram } from './program.ts'

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

describe('a program that a test starts', () => {
  let folder: string
  let log: string
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'sluice-program-'))
    log = join(folder, 'log')
  })
  afterEach(() => rmSync(folder, { recursive: true }))

  /** The process id that the program wrote as its first line. */
  const writtenPid = () => vi.waitUntil(() => Number(readFileSync(log, 'utf8').split('\n')[0]))

  it('reports the exit code and the last lines if the program exits by itself', async () => {
    const program = startProgram('sh', ['-c', 'echo one; echo two >&2; exit 3'], log)
    expect(await program.exited).toBe(3)
    expect(program.hasExited()).toBe(true)
    expect(program.lastLines()).toBe('one\ntwo\n')
    await program.stop()
  })

  it('has exited once stop resolves', async () => {
    const program = startProgram('sh', ['-c', 'echo $$; exec sleep 600'], log)
    const pid = await writtenPid()
    expect(isAlive(pid)).toBe(true)
    await program.stop()
    expect(isAlive(pid)).toBe(false)
  })

  it.runIf(process.platform === 'linux')(
    'gets signals, and is killed even if it is stopped',
    async () => {
      const program = startProgram('sh', ['-c', 'echo $$; exec sleep 600'], log)
      const pid = await writtenPid()
      const state = () => /\) (\w)/.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))?.[1]
      program.signal('STOP')
      await vi.waitUntil(() => state() === 'T')
      program.signal('CONT')
      await vi.waitUntil(() => state() === 'S')
      program.signal('STOP')
      await vi.waitUntil(() => state() === 'T')
      await program.stop()
      expect(isAlive(pid)).toBe(false)
    },
  )

  it('is killed if the process that started it is killed', async () => {
    const script = `
      import { startProgram } from ${JSON.stringify(join(import.meta.dirname, 'program.ts'))}
      startProgram('sh', ['-c', 'echo $$; exec sleep 600'], ${JSON.stringify(log)})
    `
    const parent = spawn(process.execPath, ['--input-type=module', '-e', script])
    await vi.waitUntil(() => {
      try {
        return readFileSync(log, 'utf8').includes('\n')
      } catch {
        return false
      }
    })
    const pid = await writtenPid()
    parent.kill('SIGKILL')
    await once(parent, 'exit')
    await vi.waitUntil(() => !isAlive(pid), { timeout: 10_000 })
    expect(isAlive(pid)).toBe(false)
  })
})

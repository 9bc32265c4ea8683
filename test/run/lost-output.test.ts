/** Commands whose output cannot be written, or whose input is a pipe. */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { launcher } from '../support/gateway.ts'

const folder = mkdtempSync(join(tmpdir(), 'sluice-lost-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const shell = (command: string) =>
  spawnSync('bash', ['-c', `"${launcher}" ${command}`], { encoding: 'utf8' })

describe.runIf(existsSync('/dev/full'))('a disk that is full', () => {
  it('leaves keys as they were if the new key cannot be printed', () => {
    const file = join(folder, 'keys.yaml')
    const keys = (command: string, to = '') => shell(`keys ${command} ann --file "${file}" ${to}`)
    const lost = (command: string) => {
      const { status, stderr } = keys(command, '> /dev/full')
      expect(stderr).toMatch(/^sluice: standard output cannot be written: .*\n$/)
      return status
    }
    expect([lost('create'), existsSync(file)]).toEqual([2, false])
    expect(keys('create').stdout).toMatch(/^sk-\S{43}\n$/)
    const before = readFileSync(file, 'utf8')
    expect([lost('rotate'), readFileSync(file, 'utf8')]).toEqual([2, before])
    expect(JSON.parse(keys('rotate', '-o json').stdout).key).toMatch(/^sk-/)
  })
})

describe.runIf(process.platform === 'linux')('a pipe', () => {
  it('is refused as a catalog, and not waited for', () => {
    const pipe = join(folder, 'pipe.json')
    spawnSync('mkfifo', [pipe])
    const { status, stderr } = shell(`catalog show gpt-4o --model-catalog "${pipe}"`)
    expect([status, stderr]).toEqual([2, `sluice: ${pipe}: not a regular file\n`])
  })
})

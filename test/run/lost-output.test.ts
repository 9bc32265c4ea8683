/** Commands whose output cannot be written, or whose input is a pipe. */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { launcher, RunningGateway } from '../support/gateway.ts'

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

describe.runIf(process.platform === 'linux')(
  'a pipe without a writer, and a device without an end',
  () => {
    const pipe = join(folder, 'pipe.yaml')
    spawnSync('mkfifo', [pipe])
    const other = mkdtempSync(join(tmpdir(), 'sluice-lost-other-'))
    afterAll(() => rmSync(other, { recursive: true, force: true }))
    it.each([pipe, '/dev/zero'])('are refused where a file is needed: %s', (path) => {
      const manifests = `${path}: cannot be read: not a regular file`
      for (const [command, expected] of [
        [`validate -f ${path}`, manifests],
        [`status -f ${path}`, manifests],
        [`keys import ${path} --file ${join(folder, 'new.yaml')}`, `${path}: not a regular file`],
        [`keys list --file ${path}`, `${path}: not a regular file`],
        [`proxy --config ${path}`, `${path} cannot be read: not a regular file`],
        [`simulate -f ${other} --har ${path}`, `${path}: not a regular file`],
      ] as const) {
        const { status, stdout, stderr } = shell(command)
        expect([status, stdout + stderr]).toEqual([2, expect.stringContaining(expected)])
      }
    })

    it('do not stop `sluice run`, which reports them', async () => {
      const running = new RunningGateway({ manifests: [] })
      for (const name of ['zero.yaml', 'pipe.yaml']) {
        symlinkSync(name === 'zero.yaml' ? '/dev/zero' : pipe, join(running.manifests, name))
      }
      try {
        await running.start()
        expect(running.stderr).toContain('zero.yaml: cannot be read: not a regular file')
        expect(running.stderr).toContain('pipe.yaml: cannot be read: not a regular file')
      } finally {
        await running.dispose()
      }
    })
  },
)

describe.runIf(process.platform === 'linux')('a pipe', () => {
  it('is refused as a catalog, and not waited for', () => {
    const pipe = join(folder, 'pipe.json')
    spawnSync('mkfifo', [pipe])
    const { status, stderr } = shell(`catalog show gpt-4o --model-catalog "${pipe}"`)
    expect([status, stderr]).toEqual([2, `sluice: ${pipe}: not a regular file\n`])
  })
})

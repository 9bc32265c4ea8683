import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'

const command = join(import.meta.dirname, 'run.ts')

it('says what is missing where the conformance suite cannot be run, and fails no build', () => {
  const home = mkdtempSync(join(tmpdir(), 'sluice-nothing-'))
  const { status, stderr } = spawnSync(process.execPath, ['--no-warnings', command], {
    env: { PATH: home, HOME: home },
    encoding: 'utf8',
  })
  expect(status).toBe(75)
  expect(stderr).toMatch(/^conformance: not run: no etcd in .*test\/assets\/setup/)
  rmSync(home, { recursive: true, force: true })
})

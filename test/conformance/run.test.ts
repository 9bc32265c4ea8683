import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'

const command = join(import.meta.dirname, 'run.ts')

it('the conformance run reports what is missing and does not fail the build if it cannot run', () => {
  const home = mkdtempSync(join(tmpdir(), 'sluice-nothing-'))
  const { status, stderr } = spawnSync(process.execPath, ['--no-warnings', command], {
    env: { PATH: home, HOME: home },
    encoding: 'utf8',
  })
  expect(status).toBe(75)
  expect(stderr).toMatch(/^conformance: not run: no etcd in .*test\/assets\/setup/)
  rmSync(home, { recursive: true, force: true })
})

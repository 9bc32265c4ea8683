/** A short soak; `npm run soak` runs longer ones. */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { absenceOf, proxyNames } from '../support/real-proxies.ts'

const root = join(import.meta.dirname, '..', '..')

function soak(...args: string[]) {
  const command = ['--disable-warning=ExperimentalWarning', 'scripts/soak.mjs', ...args]
  const { status, stdout, stderr } = spawnSync(process.execPath, command, {
    cwd: root,
    encoding: 'utf8',
  })
  return { status, output: `${stdout}${stderr}` }
}

const absent = proxyNames.filter((name) => absenceOf(name) !== undefined)

it.runIf(process.platform === 'linux')(
  'ends without a violation in a few seconds of traffic and faults',
  { timeout: 180_000 },
  () => {
    const without = absent.flatMap((name) => ['--without', name])
    const faults = ['--faults', 'reload,kill-worker,restart-server']
    const { status, output } = soak(
      ...['--minutes', '0.4', '--connections', '8', '--seed', '1'],
      ...without,
      ...faults,
    )
    expect([status, output]).toEqual([
      0,
      expect.stringContaining('compared with what the client got'),
    ])
  },
)

it.each([
  ['--minutes', '0'],
  ['--faults', 'flood'],
  ['--without', 'apache'],
])('refuses %s %s', (option, value) => {
  const { status, output } = soak(option, value)
  expect([status, output]).toEqual([2, expect.stringContaining('npm run soak')])
})

/** What commands print if a person looks at a terminal. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { launcher, sluice } from '../support/gateway.ts'
import { gateway, httpRoute, manifest, toBackend } from '../support/manifests.ts'

const folder = mkdtempSync(join(tmpdir(), 'sluice-terminal-'))
const file = join(folder, 'broken.yaml')
writeFileSync(
  file,
  manifest(gateway(8080), httpRoute('cart', { rules: [{ backendRefs: [toBackend('gone')] }] })),
)
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const script = spawnSync('script', ['--version']).status === 0

/**
 * Runs a command in a terminal, and returns what it shows there. Of the environment it gets only
 * what finds programs: variables such as CI and NO_COLOR switch colors off.
 */
const inTerminal = (args: string, environment: Record<string, string> = {}): string => {
  const { PATH, HOME } = process.env
  const env = { PATH, HOME, TERM: 'xterm', ...environment }
  const command = `${launcher} ${args}`
  return spawnSync('script', ['-qec', command, '/dev/null'], { env, encoding: 'utf8' }).stdout
}

describe.skipIf(!script)('on a terminal (needs the program `script`)', () => {
  it('status shows a condition that is a problem in red', () => {
    const lines = inTerminal(`status -f ${file}`).split('\n')
    const painted = lines.filter((line) => line.startsWith('\u001b[31m'))
    expect(painted.map((line) => line.replace(/ {2,}/g, ' '))).toEqual([
      expect.stringContaining('HTTPRoute default/cart parent Gateway edge ResolvedRefs False'),
    ])
  })

  it('errors of usage and warnings have a colored label', () => {
    expect(inTerminal('status --wrong')).toContain('\u001b[31merror\u001b[39m: unknown option')
    expect(inTerminal(`validate -f ${file}`)).toContain('\u001b[33mwarning\u001b[39m: ')
  })

  it('NO_COLOR switches colors off', () => {
    expect(inTerminal(`status -f ${file}`, { NO_COLOR: '1' })).not.toContain('\u001b[3')
  })
})

it('has no colors in a pipe', async () => {
  const { stdout, stderr } = await sluice('status', '-f', file)
  expect(stdout).toContain('False')
  expect(stdout + stderr).not.toContain('\u001b')
})

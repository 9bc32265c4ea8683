/** `sluice init`: what it writes is valid, and serves. */
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it, vi } from 'vitest'
import { useFixture, useUpstream } from '../support/fixture.ts'
import { freePort, launcher, sluice } from '../support/gateway.ts'
import { startProgram } from '../support/program.ts'
import { waitFor } from '../support/wait-for.ts'

const upstream = useUpstream('main')
const folder = mkdtempSync(join(tmpdir(), 'sluice-init-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const port = await freePort()
const served = join(folder, 'served')

/** A gateway on the folder that `sluice init` has written, with the key that it has printed. */
const running = useFixture(async () => {
  const url = `http://127.0.0.1:${upstream.port}`
  const more = ['--port', String(port), '--key', 'yes', '--limit', '2', '--yes']
  const { stderr, code } = await sluice('init', served, '--upstream', url, ...more)
  expect(code).toBe(0)
  const key = /Bearer (sk-sluice-\S+)"$/m.exec(stderr)?.[1] ?? ''
  const output = join(folder, 'output')
  const off = ['--admin-address', 'off', '--console-address', 'off']
  const any = ['--stats-address', '127.0.0.1:0', '--readiness-address', '127.0.0.1:0']
  const args = ['run', '-f', served, '--ephemeral', ...off, ...any]
  const program = startProgram(launcher, args, output, { PATH: process.env.PATH ?? '' })
  await waitFor('readiness', () => {
    const text = readFileSync(output, 'utf8')
    if (program.hasExited()) throw new Error(text)
    return /^ready$/m.test(text)
  })
  return { key, dispose: () => program.stop() }
})

const statusOf = async (key: string) => {
  const headers = { authorization: `Bearer ${key}` }
  return (await fetch(`http://127.0.0.1:${port}/any`, { headers })).status
}

describe('the folder of sluice init', () => {
  it('serves the upstream to clients with the key, as often as the limit says', async () => {
    expect(await statusOf('wrong')).toBe(401)
    const statuses = [await statusOf(running.key), await statusOf(running.key)]
    expect([...statuses, await statusOf(running.key)]).toEqual([200, 200, 429])
  })

  it('takes more keys', async () => {
    const created = await sluice('keys', 'create', 'bob', '--file', join(served, 'keys.yaml'))
    await waitFor('the key', async () => (await statusOf(created.stdout.trim())) === 200)
  })

  it.each([
    ['http', 'yes', '10'],
    ['http', 'no', '10'],
    ['ai', 'yes', '0'],
    ['ai', 'no', '10'],
    ['mcp', 'yes', '10'],
    ['mcp', 'no', '0'],
  ])('is valid, and each file begins with a comment: %s, key %s, limit %s', async (...answers) => {
    vi.stubEnv('OPENAI_API_KEY', 'key')
    const [serve = '', key = '', limit = ''] = answers
    const made = join(folder, answers.join('-'))
    await sluice('init', made, '--serve', serve, '--key', key, '--limit', limit)
    const { stdout, code } = await sluice('validate', '--strict', '-f', made)
    expect([stdout, code]).toEqual(['', 0])
    for (const file of readdirSync(made)) {
      expect(readFileSync(join(made, file), 'utf8')).toMatch(/^# yaml-language-server: .*\n# [A-Z]/)
    }
    expect(existsSync(join(made, 'keys.yaml'))).toBe(key === 'yes')
    expect(existsSync(join(made, 'limits.yaml'))).toBe(limit !== '0')
    vi.unstubAllEnvs()
  })
})

describe('sluice init', () => {
  it('overwrites nothing', async () => {
    const used = mkdtempSync(join(folder, 'used-'))
    writeFileSync(join(used, 'notes.txt'), 'mine')
    const { code, stderr } = await sluice('init', used, '--yes')
    expect([code, stderr]).toEqual([2, expect.stringContaining('has files, such as notes.txt')])
    expect(readdirSync(used)).toEqual(['notes.txt'])
  })

  it.each([
    [['--port', '70000'], '--port 70000: expected a port'],
    [['--upstream', 'localhost:3000'], 'expected a URL such as http://127.0.0.1:3000'],
    [['--serve', 'ai', '--upstream', 'unknown'], 'expected one of openai, anthropic'],
    [['--limit', '-1'], '--limit -1: expected a number'],
    [['--serve', 'tcp'], 'Allowed choices are http, ai, mcp'],
  ])('refuses %j, and writes nothing', async (args, message) => {
    const none = join(folder, 'none')
    const { code, stderr } = await sluice('init', none, '--yes', ...args)
    expect(stderr).toContain(message)
    expect(code).toBe(2)
    expect(existsSync(none)).toBe(false)
  })

  const script = spawnSync('script', ['--version']).status === 0
  it.skipIf(!script)(
    'asks at a terminal, again after a wrong answer (needs `script`)',
    async () => {
      const asked = join(folder, 'asked')
      const child = spawn('script', ['-qec', `${launcher} init ${asked} --limit 0`, '/dev/null'])
      let shown = ''
      child.stdout.on('data', (chunk: Buffer) => {
        shown += chunk.toString()
      })
      for (const [question, answer] of [
        ['http, ai or mcp? [http]', 'tcp'],
        ['expected http, ai or mcp', 'http'],
        ['a vendor of models? [http://127.0.0.1:3000]', ''],
        ['does the gateway listen? [8080]', '18099'],
        ['yes or no? [no]', 'no'],
      ] as const) {
        await waitFor(question, () => shown.includes(question))
        child.stdin.write(`${answer}\n`)
      }
      await waitFor('the files', () => shown.includes('sluice run -f'))
      child.stdin.end()
      expect(readFileSync(join(asked, 'gateway.yaml'), 'utf8')).toContain('port: 18099')
      expect(readdirSync(asked).sort()).toEqual(['app.yaml', 'gateway.yaml'])
    },
  )
})

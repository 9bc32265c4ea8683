/** Commands that read a log although the command line names none. */
import {
  cpSync,
  existsSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { ConsoleProcess } from '../support/console-process.ts'
import { freePort, sluice, startGateway } from '../support/gateway.ts'
import { gateway, httpRoute, manifest } from '../support/manifests.ts'

describe('a command that is not told which log to read', () => {
  let folder: string
  const logIn = (name: string) => join(folder, 'state', 'sluice', name, 'events.db')

  /** Stores the log and the records of a gateway that has answered one request. */
  async function storeLog(name: string, writtenMs: number): Promise<void> {
    const port = await freePort()
    const running = await startGateway({
      manifests: [gateway(port), httpRoute(name, { rules: [] })],
      args: ['--record', 'all', '--record-dir', join(folder, `${name}.records`)],
    })
    try {
      await running.send(port, { path: `/${name}` })
      await running.stop()
      cpSync(running.logFile, logIn(name), { recursive: true })
      utimesSync(logIn(name), writtenMs / 1000, writtenMs / 1000)
    } finally {
      await running.dispose()
    }
  }

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'sluice-newest-'))
    vi.stubEnv('XDG_STATE_HOME', join(folder, 'state'))
    await storeLog('newer', 2_000_000_000)
    await storeLog('older', 1_000_000_000)
    cpSync(join(folder, 'older.records'), `${logIn('older')}.decisions`, { recursive: true })
  })
  afterAll(() => {
    vi.unstubAllEnvs()
    rmSync(folder, { recursive: true, force: true })
  })

  it.each([
    ['log', []],
    ['status', []],
    ['explain', ['HTTPRoute', 'default/newer']],
    ['explain', ['condition', 'HTTPRoute/default/newer']],
  ])('reads the log that was written last, and says so: %s', async (command, args) => {
    const { code, stdout, stderr } = await sluice(command, ...args)
    expect(code).toBe(0)
    expect(stdout).toMatch(/HTTPRoute default.newer/)
    const left = 'no gateway runs with this log: these are the conditions that the last one left\n'
    expect(stderr).toBe(
      `event log: ${logIn('newer')} (the newest; --log-file names another one)\n${command === 'status' ? left : ''}`,
    )
  })

  it('reads the log of the running gateway, although another one was written later', async () => {
    const manifests = [gateway(await freePort()), httpRoute('served', { rules: [] })]
    const running = await startGateway({ manifests })
    const log = logIn('running')
    symlinkSync(running.folder, dirname(log))
    try {
      const { stdout, stderr } = await sluice('status')
      expect(stdout).toContain('HTTPRoute default/served')
      expect(stderr).toBe(
        `event log: ${log} (of the running gateway; --log-file names another one)\n`,
      )
    } finally {
      rmSync(dirname(log))
      await running.dispose()
    }
  })

  it('compares a change with the state in the newest log', async () => {
    const change = join(folder, 'change.yaml')
    writeFileSync(change, manifest(httpRoute('added', { rules: [] })))
    const { code, stdout, stderr } = await sluice('what-if', '--overlay', '-f', change)
    expect([code, stdout]).toEqual([1, expect.stringContaining('+ HTTPRoute default/added')])
    expect(stderr).toContain(`event log: ${logIn('newer')} (the newest`)
  })

  it('serves the console of the log that was written last', async () => {
    const served = new ConsoleProcess()
    try {
      await served.url()
      expect(served.stderr).toContain(`event log: ${logIn('newer')}`)
    } finally {
      await served.dispose()
    }
  })

  it('prints the decisions next to the newest log that has any', async () => {
    expect(existsSync(`${logIn('newer')}.decisions`)).toBe(false)
    const { code, stdout, stderr } = await sluice('decisions')
    expect([code, stdout]).toEqual([0, expect.stringContaining('/older')])
    const records = `${logIn('older')}.decisions`
    expect(stderr).toBe(`decision records: ${records} (the newest; --record-dir names others)\n`)
  })

  it('finds events that only the write-ahead log of a running gateway has', async () => {
    const path = logIn('older')
    cpSync(path, `${path}-wal`)
    const now = 2_100_000_000
    utimesSync(`${path}-wal`, now, now)
    const { stderr } = await sluice('log', '--at', '0')
    expect(stderr).toContain(`event log: ${path}`)
    rmSync(`${path}-wal`, { force: true })
  })

  it('asks for a source if the state folder has no log', async () => {
    vi.stubEnv('XDG_STATE_HOME', join(folder, 'empty'))
    const { code, stderr } = await sluice('status')
    expect([code, stderr]).toEqual([
      2,
      expect.stringContaining('name either manifests (-f) or a log'),
    ])
    const state = join(folder, 'empty', 'sluice')
    expect(stderr).toContain(`no event log was found in ${state}; sluice run stores one there\n`)
    expect((await sluice('decisions')).stderr).toContain('name either --record-dir or --nats')
    expect((await sluice('console', '--no-open')).stderr).toContain('name exactly one of')
    vi.stubEnv('XDG_STATE_HOME', join(folder, 'state'))
  })
})

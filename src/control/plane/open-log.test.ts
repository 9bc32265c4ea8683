import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { routeApplied } from '../../../test/contract/events.ts'
import { openLog, stateFolder } from './open-log.ts'

const folder = mkdtempSync(join(tmpdir(), 'sluice-full-'))
const disk = join(folder, 'disk')
mkdirSync(disk)

/** Whether this user may mount a small disk. */
function mountDisk(): boolean {
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=700k', 'none', disk], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

const isMounted = mountDisk()
afterAll(() => {
  if (isMounted) execFileSync('umount', [disk])
  rmSync(folder, { recursive: true })
})

function fill(): void {
  for (const size of [65_536, 4_096, 1]) {
    try {
      for (;;) writeFileSync(join(disk, 'filler'), Buffer.alloc(size), { flag: 'a' })
    } catch {
      // The disk has no room for this many bytes.
    }
  }
}

describe.skipIf(!isMounted)('a log file on a full disk', () => {
  const logFile = join(disk, 'events.db')
  const said: string[] = []
  beforeAll(() => {
    fill()
  })

  it('is replaced by a log in memory when it cannot be opened', async () => {
    const opened = await openLog([], { logFile })
    expect(opened.path).toBeUndefined()
    expect(opened.notices).toEqual([expect.stringMatching(/disk of .*events\.db is full/)])
    expect(await opened.log.append([routeApplied('a')])).toMatchObject({ value: [1] })
    await opened.close()
  })

  it('continues in memory when the disk fills later, and is stored when it has space', async () => {
    rmSync(join(disk, 'filler'))
    const opened = await openLog([], { logFile })
    expect(opened.path).toBe(logFile)
    opened.watch?.((severity, text) => said.push(`${severity} ${text}`))
    fill()
    const large = 'x'.repeat(20_000)
    for (let version = 1; version <= 3; version++) {
      const appended = await opened.log.append([routeApplied('a', version, large)])
      expect(appended).toMatchObject({ value: [version] })
    }
    expect(said).toEqual([expect.stringMatching(/^warn Event log continues in memory/)])
    rmSync(join(disk, 'filler'))
    await opened.close()
    expect(said.at(-1)).toMatch(/^info .* has all events/)
    const again = await openLog([], { logFile })
    expect(await again.log.lastPosition()).toBe(3)
    await again.close()
  })

  it('is still refused if its folder is wrong', async () => {
    fill()
    await expect(openLog([], { logFile: join(disk, 'x.yaml') })).resolves.toBeDefined()
    await expect(openLog([], { logFile: '/proc/none/events.db' })).rejects.toThrow(
      'cannot be written',
    )
  })
})

describe('the folder of state', () => {
  afterEach(() => void vi.unstubAllEnvs())

  it('is where XDG_STATE_HOME says, unless it is empty or relative', () => {
    const usual = join(homedir(), '.local', 'state', 'sluice')
    for (const [home, folder] of [
      ['/var/state', '/var/state/sluice'],
      ['', usual],
      ['state', usual],
      [undefined, usual],
    ] as const) {
      vi.stubEnv('XDG_STATE_HOME', home)
      expect(stateFolder()).toBe(folder)
    }
  })
})

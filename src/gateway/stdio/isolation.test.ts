import { describe, expect, it } from 'vitest'
import type { StdioServer } from '../backends/mcp/stdio/settings.ts'
import { confined, describeIsolation, findIsolation, noIsolation } from './isolation.ts'

const server: StdioServer = {
  command: ['server', '--flag'],
  scope: 'Session',
  network: false,
  label: 'a/b/c',
  env: {},
  limits: {
    memoryBytes: 1_000_000,
    openFiles: 64,
    processes: 8,
    instances: 1,
    timeoutMs: 1_000,
    messageBytes: 1_000,
  },
}

describe('isolation of commands', () => {
  it('says what a platform without any of the facilities lacks', () => {
    const { inForce, missing } = describeIsolation(noIsolation)
    expect(inForce).toBe('servers are not confined')
    expect(missing.map((text) => text.split(':')[0])).toEqual([
      'no namespaces (unshare)',
      'no setpriv',
      'capabilities cannot be dropped',
      'no prlimit',
    ])
    expect(confined(server, noIsolation)).toEqual(['server', '--flag'])
  })

  it('names each protection in force, and confines the command by it', () => {
    const isolation = {
      namespaces: ['--user', '--net'],
      unshare: '/bin/unshare',
      prlimit: '/bin/prlimit',
      setpriv: ['/bin/setpriv', '--no-new-privs', '--bounding-set=-all'],
      hasNoCapabilities: true,
    }
    expect(describeIsolation(isolation)).toEqual({
      inForce:
        'servers have no network (unless a target allows it), no view of other processes, no new privileges, no capabilities, limits of memory, open files and processes',
      missing: [],
    })
    const command = confined(server, isolation).join(' ')
    expect(command).toMatch(
      /^\/bin\/unshare --user --net -- \/bin\/setpriv --no-new-privs --bounding-set=-all -- \/bin\/prlimit .*--nofile=64 .*--nproc=8 -- server --flag$/,
    )
    expect(confined({ ...server, network: true }, isolation)).not.toContain('--net')
  })

  it.runIf(process.getuid?.() === 0)('tries what the user of the commands can do', () => {
    const { setpriv, hasNoCapabilities } = findIsolation({ uid: 65_534, gid: 65_534 })
    expect(hasNoCapabilities).toBe(true)
    if (setpriv !== undefined) expect(setpriv).toContain('--no-new-privs')
  })
})

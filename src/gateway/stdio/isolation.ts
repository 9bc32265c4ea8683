/**
 * What the platform offers to confine a server. The programs `unshare`, `setpriv` and `prlimit` (util-linux) confine
 * the process and then execute the command, so no code of the server runs before.
 */
import { spawnSync } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import type { StdioServer } from '../backends/mcp/stdio/settings.ts'

/** The user that servers run as, if it is not the user of the gateway. */
export interface ProcessUser {
  readonly uid: number
  readonly gid: number
}

export interface Isolation {
  /** Arguments of unshare without a network; undefined if the platform has no namespaces. */
  readonly namespaces: readonly string[] | undefined
  /** Paths of the programs that are there. */
  readonly unshare: string | undefined
  readonly prlimit: string | undefined
  /** The path of setpriv and its arguments. */
  readonly setpriv: readonly string[] | undefined
  /** Whether servers have none of the capabilities of the gateway, also if they run as root. */
  readonly hasNoCapabilities: boolean
}

export const noIsolation: Isolation = {
  namespaces: undefined,
  unshare: undefined,
  prlimit: undefined,
  setpriv: undefined,
  hasNoCapabilities: false,
}

const folders = ['/usr/bin', '/bin', '/usr/sbin', '/sbin']

/** The programs are not searched in PATH, which a user may set. */
function pathOf(program: string): string | undefined {
  return folders
    .map((folder) => `${folder}/${program}`)
    .find((path) => {
      try {
        accessSync(path, constants.X_OK)
        return true
      } catch {
        return false
      }
    })
}

const common = ['--user', '--map-current-user', '--net', '--ipc', '--pid', '--fork', '--kill-child']
/** From the best to the least. Containers often refuse another `/proc`. */
const candidates = [[...common, '--mount-proc'], common]

const noNewPrivileges = '--no-new-privs'
/** Arguments of setpriv to try, in this order. Only root needs the first, and only root can set it. */
const privileges = [[noNewPrivileges, '--bounding-set=-all', '--inh-caps=-all'], [noNewPrivileges]]

/** Finds out what the platform offers to servers that run as this user, by trying it. */
export function findIsolation(user: ProcessUser | undefined): Isolation {
  if (process.platform !== 'linux') return noIsolation
  const works = ([program = '', ...args]: readonly string[]) =>
    spawnSync(program, [...args, '--', '/bin/true'], { ...user, ...quiet }).status === 0
  const unshare = pathOf('unshare')
  const setpriv = pathOf('setpriv')
  const prlimit = pathOf('prlimit')
  const namespaces =
    unshare === undefined ? undefined : candidates.find((args) => works([unshare, ...args]))
  // In the namespaces of the server, root has capabilities that it may lack outside.
  const outer = namespaces === undefined ? [] : [unshare ?? '', ...namespaces, '--']
  const dropped =
    setpriv === undefined
      ? undefined
      : privileges.find((args) => works([...outer, setpriv, ...args]))
  const isRoot = (user?.uid ?? process.getuid?.()) === 0
  return {
    unshare,
    namespaces,
    setpriv: setpriv === undefined || dropped === undefined ? undefined : [setpriv, ...dropped],
    hasNoCapabilities: !isRoot || dropped === privileges[0],
    prlimit: prlimit !== undefined && works([prlimit, '--core=0']) ? prlimit : undefined,
  }
}

const quiet = { stdio: 'ignore', timeout: 5_000 } as const

/** Returns the protections in force, as one sentence, and what is missing. */
export function describeIsolation({ namespaces, setpriv, prlimit, hasNoCapabilities }: Isolation): {
  readonly inForce: string
  readonly missing: readonly string[]
} {
  const all = [
    {
      holds: namespaces !== undefined,
      protection: 'no network (unless a target allows it), no view of other processes',
      missing: 'no namespaces (unshare): servers have network access and see other processes',
    },
    {
      holds: setpriv !== undefined,
      protection: 'no new privileges',
      missing: 'no setpriv: servers may gain privileges by setuid programs',
    },
    {
      holds: hasNoCapabilities,
      protection: 'no capabilities',
      missing: 'capabilities cannot be dropped: servers run as root with those of the gateway',
    },
    {
      holds: prlimit !== undefined,
      protection: 'limits of memory, open files and processes',
      missing: 'no prlimit: open files are not limited',
    },
  ]
  const held = all.filter(({ holds }) => holds).map(({ protection }) => protection)
  return {
    inForce: held.length === 0 ? 'servers are not confined' : `servers have ${held.join(', ')}`,
    missing: all.filter(({ holds }) => !holds).map(({ missing }) => missing),
  }
}

/** Memory that is reserved beyond the limit, for stacks and code. The memory in use is measured. */
const reservedBytes = 2 * 1024 * 1024 * 1024

/** Returns the command that confines itself and then executes the server. */
export function confined(
  { command, network, limits }: StdioServer,
  { unshare, namespaces, setpriv, prlimit }: Isolation,
): readonly [string, ...string[]] {
  const words: string[] = []
  const isNamed = unshare !== undefined && namespaces !== undefined
  if (isNamed) words.push(unshare, ...namespaces.filter((one) => !network || one !== '--net'), '--')
  if (setpriv !== undefined) words.push(...setpriv, '--')
  if (prlimit !== undefined) {
    words.push(prlimit, '--core=0', `--nofile=${limits.openFiles}`)
    words.push(`--data=${limits.memoryBytes + reservedBytes}`)
    // Outside of a user namespace the limit would count all processes of the user.
    if (isNamed) words.push(`--nproc=${limits.processes}`)
    words.push('--')
  }
  const [program, ...rest] = [...words, ...command]
  return [program ?? command[0], ...rest]
}

/**
 * What the platform offers to confine a server. The programs `unshare`, `setpriv` and `prlimit` (util-linux) confine
 * the process and then execute the command, so no code of the server runs before.
 */
import { spawnSync } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import type { StdioServer } from '../backends/mcp/stdio/settings.ts'

export interface Isolation {
  /** Arguments of unshare without a network; undefined if the platform has no namespaces. */
  readonly namespaces: readonly string[] | undefined
  /** Paths of the programs that are there. */
  readonly unshare: string | undefined
  readonly setpriv: string | undefined
  readonly prlimit: string | undefined
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

/** Finds out what the platform offers, by trying it. */
export function findIsolation(): Isolation {
  if (process.platform !== 'linux') {
    return { namespaces: undefined, unshare: undefined, setpriv: undefined, prlimit: undefined }
  }
  const unshare = pathOf('unshare')
  const works = (program: string | undefined, args: readonly string[]) =>
    program !== undefined &&
    spawnSync(program, [...args, '--', '/bin/true'], { stdio: 'ignore', timeout: 5_000 }).status ===
      0
  const setpriv = pathOf('setpriv')
  const prlimit = pathOf('prlimit')
  return {
    unshare,
    namespaces: candidates.find((args) => works(unshare, args)),
    setpriv: works(setpriv, ['--no-new-privs']) ? setpriv : undefined,
    prlimit: works(prlimit, ['--core=0']) ? prlimit : undefined,
  }
}

/** Says what is missing; empty if servers are fully confined. */
export function missingIsolation({ namespaces, setpriv, prlimit }: Isolation): string[] {
  return [
    ...(namespaces === undefined
      ? ['no namespaces (unshare): servers have network access and see other processes']
      : []),
    ...(setpriv === undefined
      ? ['no setpriv: servers may gain privileges by setuid programs']
      : []),
    ...(prlimit === undefined ? ['no prlimit: open files are not limited'] : []),
  ]
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
  if (setpriv !== undefined) words.push(setpriv, '--no-new-privs', '--')
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

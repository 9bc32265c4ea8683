/** Memory and number of the processes of servers, from `/proc`. Nothing is known on other platforms. */
import { readdirSync, readFileSync } from 'node:fs'

interface Usage {
  readonly bytes: number
  readonly processes: number
}

interface ProcessStat {
  readonly pid: number
  readonly parent: number
  readonly session: number
  readonly bytes: number
}

const pageBytes = 4_096

/** After this number of reads, all processes are read again, because process ids are reused. */
const readsPerScan = 10

/** Measures what servers use. It skips other processes, of which there may be thousands, by their ids. */
export class UsageReader {
  #others = new Set<string>()
  #reads = 0

  /** Returns what the processes of each server use, by the process id of the server, which leads a session. */
  read(servers: ReadonlySet<number>): ReadonlyMap<number, Usage> {
    if (this.#reads++ % readsPerScan === 0) this.#others = new Set()
    const stats = pids().flatMap((pid) => (this.#others.has(pid) ? [] : (statOf(pid) ?? [])))
    const byPid = new Map(stats.map((one) => [one.pid, one]))
    const found = new Map<number, Usage>()
    for (const one of stats) {
      const leaders = [...leadersOf(one, byPid)].filter((leader) => servers.has(leader))
      if (leaders.length === 0) this.#others.add(`${one.pid}`)
      for (const leader of leaders) {
        const { bytes = 0, processes = 0 } = found.get(leader) ?? {}
        found.set(leader, { bytes: bytes + one.bytes, processes: processes + 1 })
      }
    }
    return found
  }
}

/** The sessions of a process and of its ancestors: a child that begins a session of its own still counts. */
function leadersOf(
  one: Pick<ProcessStat, 'session' | 'parent'>,
  byPid: ReadonlyMap<number, ProcessStat>,
): ReadonlySet<number> {
  const leaders = new Set([one.session])
  let parent = byPid.get(one.parent)
  for (let steps = 0; parent !== undefined && steps < 64; steps++) {
    leaders.add(parent.session)
    parent = byPid.get(parent.parent)
  }
  return leaders
}

function pids(): string[] {
  if (process.platform !== 'linux') return []
  try {
    return readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  } catch {
    return []
  }
}

function statOf(pid: string): ProcessStat | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // The name is in parentheses and may contain spaces.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    return {
      pid: Number(pid),
      parent: Number(fields[1]),
      session: Number(fields[3]),
      bytes: Number(fields[21]) * pageBytes,
    }
  } catch {
    return undefined
  }
}

/** Ends processes whose environment has the variable: children that have left the group of their server. */
export function endSurvivors(variable: string): void {
  for (const pid of pids()) {
    if (Number(pid) === process.pid) continue
    try {
      if (!readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0').includes(variable)) continue
      process.kill(Number(pid), 'SIGKILL')
    } catch {
      // It has ended, or belongs to another user.
    }
  }
}

/** Measured proxies as processes of their own, pinned to one core, with their CPU time. */
import { type ChildProcess, spawn } from 'node:child_process'
import { openSync, readdirSync, readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { pinned } from '../harness.ts'

/** The core of the proxy; everything else runs on another. */
export const proxyCore = 0
export const loadCore = 1

export interface MeasuredProxy {
  readonly name: string
  readonly version: string
  readonly port: number
  /** User and system time of the process with all its threads so far, in nanoseconds. */
  cpuTime(): number
  /** The same of each thread, by its number. */
  threadTimes(): ReadonlyMap<string, number>
  residentBytes(): number
  /** The last characters that it wrote to standard error. */
  stderr(): string
  stop(): Promise<void>
}

export interface ProxyCommand {
  readonly name: string
  readonly version: string
  readonly port: number
  readonly command: readonly string[]
}

/** How to start a peer, or why it cannot be. */
export type Peer = { readonly name: string } & (
  | { readonly command: ProxyCommand }
  | { readonly absent: string }
)

/** Children to kill when this process exits. */
const running = new Set<ChildProcess>()
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

const delay = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

function isOpen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' })
    socket.once('error', () => resolve(false))
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
  })
}

/** Starts a proxy and waits until its port is open. Its access log goes to /dev/null. */
export async function startProxyProcess(proxy: ProxyCommand): Promise<MeasuredProxy> {
  const [program = '', ...args] = pinned(proxyCore, proxy.command)
  const nowhere = openSync('/dev/null', 'w')
  const child = spawn(program, args, { stdio: ['ignore', nowhere, 'pipe'] })
  running.add(child)
  let complaints = ''
  child.stderr?.on('data', (text) => {
    complaints = `${complaints}${text}`.slice(-4000)
  })
  const gone = new Promise<void>((resolve) => {
    child.once('close', () => resolve())
    child.once('error', (error) => {
      complaints += error.message
      resolve()
    })
  })
  void gone.then(() => running.delete(child))
  const giveUp = performance.now() + 120_000
  while (!(await isOpen(proxy.port))) {
    if (!running.has(child) || performance.now() > giveUp) {
      child.kill('SIGKILL')
      throw new Error(`${proxy.name} does not listen: ${complaints.trim()}`)
    }
    await delay(20)
  }
  const stop = async () => {
    child.kill('SIGKILL')
    await gone
  }
  const { name, version, port } = proxy
  return {
    name,
    version,
    port,
    cpuTime: () => cpuTime(child),
    threadTimes: () => threadTimesOf(child),
    residentBytes: () => memoryOf(child.pid),
    stderr: () => complaints,
    stop,
  }
}

/** User and system time of a process with all its threads so far, in nanoseconds. */
export function cpuTime(child: Pick<ChildProcess, 'pid'>): number {
  return [...threadTimesOf(child).values()].reduce((sum, time) => sum + time, 0)
}

/** From the scheduler's own accounts, which are exact where clock ticks (10 ms) are coarse. */
function threadTimesOf({ pid }: Pick<ChildProcess, 'pid'>): ReadonlyMap<string, number> {
  const times = new Map<string, number>()
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    const account = readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'latin1')
    times.set(thread, Number.parseInt(account, 10))
  }
  return times
}

/**
 * Resident memory of a process in bytes, now (`VmRSS`) or at its largest (`VmHWM`); NaN if it has ended and waits
 * for its parent. Throws if it is gone.
 */
export function memoryOf(pid: number | undefined, field: 'VmRSS' | 'VmHWM' = 'VmRSS'): number {
  const status = readFileSync(`/proc/${pid}/status`, 'latin1')
  return Number(new RegExp(`${field}:\\s+(\\d+) kB`).exec(status)?.[1] ?? Number.NaN) * 1024
}

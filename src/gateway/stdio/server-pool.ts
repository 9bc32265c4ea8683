/** The processes of one server: which request uses which, how many there are, and when one may start again. */
import type { StdioServer } from '../backends/mcp/stdio/settings.ts'
import { HostSession, Instance, type InstanceParts } from './instance.ts'
import { ServerLog, type WriteLog } from './server-log.ts'

export interface PoolParts extends Pick<InstanceParts, 'isolation' | 'user' | 'version'> {
  readonly log: WriteLog
}

/** Why no process can serve a request. The text completes the sentence `the server …`. */
export class PoolRefusal extends Error {
  override readonly name = 'PoolRefusal'
}

/** After this time without messages a session ends. */
const idleSessionMs = 30 * 60_000
/** After this time without sessions a shared process ends. */
const idleProcessMs = 5 * 60_000
const maxSessions = 10_000
const minBackoffMs = 500
const maxBackoffMs = 30_000

export class ServerPool {
  readonly server: StdioServer
  readonly #parts: PoolParts
  readonly #log: ServerLog
  /** Processes that several sessions share, by who uses them. */
  readonly #shared = new Map<string, Instance>()
  readonly instances = new Set<Instance>()
  readonly #sessions = new Map<string, HostSession>()
  /** Processes in a row that have ended before they answered anything. */
  #failures = 0
  #retryAt = 0
  #lastReason = ''

  constructor(server: StdioServer, parts: PoolParts) {
    this.server = server
    this.#parts = parts
    this.#log = new ServerLog(server.label, parts.log)
  }

  /** Begins a session of the legacy era. @throws PoolRefusal */
  begin(principal: string): HostSession {
    const { scope } = this.server
    const key = scope === 'Shared' ? '' : scope === 'Principal' ? principal : undefined
    const isPrivate = key === undefined || (scope === 'Principal' && key === '')
    const instance = isPrivate ? this.#start(true) : this.#sharedBy(`legacy ${key}`)
    const [oldest] = this.#sessions.size < maxSessions ? [] : this.#sessions.values()
    if (oldest !== undefined) this.end(oldest)
    const session = new HostSession(principal, instance)
    this.#sessions.set(session.id, session)
    return session
  }

  /** Returns the session if it exists and belongs to the principal. */
  find(id: string, principal: string): HostSession | undefined {
    const session = this.#sessions.get(id)
    if (session === undefined || session.principal !== principal) return undefined
    if (session.instance.isOver) return undefined
    const now = performance.now()
    session.lastUsed = now
    session.instance.lastUsed = now
    return session
  }

  /**
   * Returns the process for requests of the modern era, which do not depend on each other: one for each principal,
   * or one for all. @throws PoolRefusal
   */
  modern(principal: string): Instance {
    return this.#sharedBy(`modern ${this.server.scope === 'Shared' ? '' : principal}`)
  }

  end(session: HostSession): void {
    const { instance, id } = session
    this.#sessions.delete(id)
    session.endStream()
    instance.sessions.delete(session)
    const isShared = [...this.#shared.values()].includes(instance)
    if (!isShared) void instance.process.stop()
  }

  /** Stops a process that no session uses. */
  retire(instance: Instance): void {
    if (!instance.isIdle) return
    this.#forget(instance)
    void instance.process.stop()
  }

  #forget(instance: Instance): void {
    for (const [key, one] of this.#shared) if (one === instance) this.#shared.delete(key)
  }

  #sharedBy(key: string): Instance {
    const found = this.#shared.get(key)
    if (found !== undefined) {
      found.lastUsed = performance.now()
      return found
    }
    const instance = this.#start(false)
    this.#shared.set(key, instance)
    return instance
  }

  #start(isPrivate: boolean): Instance {
    const { instances: most } = this.server.limits
    const wait = Math.ceil((this.#retryAt - performance.now()) / 1_000)
    if (wait > 0) {
      const often = this.#failures === 1 ? '' : `, ${this.#failures} times in a row`
      throw new PoolRefusal(`${this.#lastReason}${often}; it may start again in ${wait} s`)
    }
    if (this.instances.size >= most) {
      throw new PoolRefusal(`already has ${most} processes, the limit of the target`)
    }
    const instance = this.#launch(isPrivate)
    this.instances.add(instance)
    return instance
  }

  #launch(isPrivate: boolean): Instance {
    const { isolation, user, version } = this.#parts
    try {
      return new Instance({
        ...{ isolation, user, version, isPrivate },
        server: this.server,
        log: this.#log,
        onEnd: (ended, reason) => this.#ended(ended, reason),
      })
    } catch (error) {
      // For example, no space for its folder.
      const why = error instanceof Error ? error.message : String(error)
      throw new PoolRefusal(`cannot be started: ${why}`)
    }
  }

  #ended(instance: Instance, reason: string | undefined): void {
    this.instances.delete(instance)
    this.#forget(instance)
    for (const session of instance.sessions) {
      this.#sessions.delete(session.id)
      session.endStream()
    }
    if (reason === undefined) return
    if (instance.channel.hasAnswered) {
      this.#failures = 0
      return
    }
    this.#failures++
    this.#lastReason = reason
    const delay = Math.min(minBackoffMs * 2 ** (this.#failures - 1), maxBackoffMs)
    this.#retryAt = performance.now() + delay
  }

  /** Ends processes that are idle or exceed a limit. Called periodically, with the resources that each process uses. */
  sweep(usage: ReadonlyMap<number, { readonly bytes: number; readonly processes: number }>): void {
    const now = performance.now()
    for (const session of [...this.#sessions.values()]) {
      const isUsed = !session.instance.channel.isIdle
      if (!isUsed && now - session.lastUsed > idleSessionMs) this.end(session)
    }
    const { memoryBytes, processes } = this.server.limits
    for (const instance of [...this.instances]) {
      instance.channel.sweep(now)
      const { process } = instance
      const used = process.pid === undefined ? undefined : usage.get(process.pid)
      if (used !== undefined && used.bytes > memoryBytes) {
        process.end(`uses more than ${memoryBytes} bytes of memory`)
      } else if (used !== undefined && used.processes > processes + confiningProcesses) {
        process.end(`has more than ${processes} processes`)
      } else if (now - instance.lastUsed > idleProcessMs) this.retire(instance)
    }
  }

  /** Ends everything. Resolves when all processes have ended. */
  async close(): Promise<void> {
    for (const session of this.#sessions.values()) session.endStream()
    await Promise.all([...this.instances].map((instance) => instance.process.stop()))
  }
}

/** `unshare` waits for the server that it has started. */
const confiningProcesses = 1

/**
 * Which ports a worker holds, driven by the listeners that it was sent. A port that cannot be bound
 * stops no other; its listeners are rejected, and it is tried again until it works or nobody wants
 * it any more.
 *
 *   wanted  ---bind---> bound        bound, no listener left ---unlisten---> gone
 *     |  ^
 *   fails |  after a second
 *     v  |
 *    waiting
 */
import { GatewayError } from '../errors.ts'
import type { DesiredDelta, ListenerResource, ResourceKey } from '../model/resources.ts'
import type { Engine } from './engine/types.ts'
import type { WorkerRejection } from './worker-messages.ts'

const retryMs = 1_000

interface WantedListener {
  readonly port: number
  /** Position of the change set that brought it. */
  readonly sequence: number
  readonly protocol: ListenerResource['protocol']
}

interface Port {
  readonly number: number
  isBound: boolean
  /** Why the last attempt failed. */
  problem: string | undefined
  retry: NodeJS.Timeout | undefined
  /** The attempt that is under way. */
  running: Promise<void> | undefined
}

export interface PortOptions {
  readonly engine: Pick<Engine, 'listen' | 'unlisten'>
  /** Rejects where the port belongs to another process. */
  claim(port: number): Promise<void>
  release(port: number): void
  /** A port was bound, or failed in another way, without a change of configuration. */
  onChange(): void
}

/** The innermost message: what the system said. */
function problemOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.cause instanceof Error ? error.cause.message : error.message
}

export class ListenerPorts {
  readonly #options: PortOptions
  readonly #listeners = new Map<ResourceKey, WantedListener>()
  readonly #ports = new Map<number, Port>()
  #isStopped = false

  constructor(options: PortOptions) {
    this.#options = options
  }

  /** Takes in a change set; resolves when every wanted port is bound or has failed. */
  async update(delta: DesiredDelta): Promise<void> {
    for (const key of delta.removed) this.#listeners.delete(key)
    for (const { resource } of delta.upserted) {
      if (resource.type !== 'listener') continue
      const { port, protocol } = resource
      this.#listeners.set(resource.key, { port, protocol, sequence: delta.sequence })
    }
    // While draining, ports close when the engine says so.
    if (this.#isStopped) return
    const wanted = this.#wanted()
    for (const number of wanted)
      if (!this.#ports.has(number)) this.#ports.set(number, newPort(number))
    const settled: Promise<void>[] = []
    for (const port of this.#ports.values()) {
      // A port that waits for its next attempt has failed already: its listeners are rejected.
      if (wanted.has(port.number) && port.retry !== undefined) continue
      const driven = this.#drive(port)
      if (wanted.has(port.number)) settled.push(driven)
    }
    await Promise.all(settled)
  }

  #wanted(): Set<number> {
    const ports = new Set<number>()
    for (const { port, protocol } of this.#listeners.values())
      if (protocol === 'HTTP') ports.add(port)
    return ports
  }

  #isWanted(port: number): boolean {
    if (this.#isStopped) return false
    return this.#wanted().has(port)
  }

  /** One attempt at a time: brings the port to what is wanted, however often that changes. */
  #drive(port: Port): Promise<void> {
    port.running ??= this.#bring(port).finally(() => {
      port.running = undefined
    })
    return port.running
  }

  async #bring(port: Port): Promise<void> {
    clearTimeout(port.retry)
    port.retry = undefined
    while (this.#isWanted(port.number) !== port.isBound) {
      if (port.isBound) await this.#unbind(port)
      else if (!(await this.#bind(port))) return
    }
    if (!port.isBound) this.#ports.delete(port.number)
  }

  async #bind(port: Port): Promise<boolean> {
    try {
      await this.#options.claim(port.number)
      await this.#options.engine.listen(port.number)
      port.isBound = true
      port.problem = undefined
      return true
    } catch (error) {
      this.#options.release(port.number)
      port.problem = problemOf(error)
      port.retry = setTimeout(() => this.#tryAgain(port), retryMs)
      return false
    }
  }

  async #tryAgain(port: Port): Promise<void> {
    const before = port.problem
    await this.#drive(port)
    if (port.problem !== before) this.#options.onChange()
  }

  async #unbind(port: Port): Promise<void> {
    port.isBound = false
    await this.#options.engine.unlisten(port.number)
    this.#options.release(port.number)
  }

  bound(): number[] {
    return [...this.#ports.values()].filter((port) => port.isBound).map((port) => port.number)
  }

  /** Wanted and not bound. */
  unbound(): number[] {
    const bound = new Set(this.bound())
    return [...this.#wanted()].filter((port) => !bound.has(port))
  }

  /** Listeners that are not served, with the reason. */
  rejections(): WorkerRejection[] {
    const rejected: WorkerRejection[] = []
    for (const [key, { port, protocol, sequence }] of this.#listeners) {
      const problem = this.#ports.get(port)?.problem
      if (protocol !== 'HTTP') {
        const { code, message } = new GatewayError('protocol_unsupported', protocol)
        rejected.push({ key, sequence, code, message })
      } else if (problem !== undefined) {
        const { code, message } = new GatewayError('port_in_use', `port ${port}: ${problem}`)
        rejected.push({ key, sequence, code, message })
      }
    }
    return rejected
  }

  /** Tries no more; ports stay as they are. */
  stop(): void {
    this.#isStopped = true
    for (const port of this.#ports.values()) clearTimeout(port.retry)
  }
}

function newPort(number: number): Port {
  return { number, isBound: false, problem: undefined, retry: undefined, running: undefined }
}

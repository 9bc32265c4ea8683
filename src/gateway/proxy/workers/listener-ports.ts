/**
 * Binds the ports of a worker's listeners. If a port cannot be bound, its listeners are rejected
 * and it is retried until it works or no listener needs it; other ports are not affected.
 *
 *   wanted  ---bind---> bound        bound, no listener left ---unlisten---> gone
 *     |  ^                |  ^
 *   fails |  after a      +--+ its protocol changes: unlisten, bind
 *     v  |   second
 *    waiting
 *
 * A TCP port carries plaintext HTTP, TLS (of HTTPS and TLS listeners), or forwarded bytes; UDP ports are
 * separate. If listeners of several Gateways disagree, the one with the smallest key decides, and those
 * of other protocols are rejected.
 */
import type { PortChange } from '../../../engines/http/contracts/engine.ts'
import type { Engine } from '../../../engines/http/engine.ts'
import type { TlsChoice } from '../../../engines/http/tls/tls-choice.ts'
import { portError } from '../../../ground/errors/listening.ts'
import { compareText } from '../../../ground/model/names.ts'
import type {
  DesiredDelta,
  ListenerResource,
  ResourceKey,
} from '../../../ground/model/resources.ts'
import { type PortUse, useOf } from '../config/listener-tables.ts'
import type { PortName, WorkerRejection } from './worker-messages.ts'

const retryMs = 1_000

interface WantedListener {
  readonly port: PortName
  /** Sequence of the change set that contained the listener. */
  readonly sequence: number
  readonly protocol: ListenerResource['protocol']
}

interface Port {
  readonly name: PortName
  readonly number: number
  /** What the port carries; undefined while the port is not bound. */
  bound?: PortUse | undefined
  /** Why the last attempt to bind the port failed, if it did. */
  problem?: string | undefined
  retry?: NodeJS.Timeout | undefined
  /** The running attempt to bind or unbind the port. */
  running?: Promise<void> | undefined
}

type PortEngine = Pick<
  Engine,
  'configure' | 'listen' | 'listenStream' | 'listenDatagrams' | 'unlisten' | 'unlistenDatagrams'
>

interface PortOptions {
  readonly engine: PortEngine
  /** Returns the settings of connections on a port, from policies. */
  settings(port: number, use: PortUse): PortChange
  /** Called at each handshake on a TLS port. Returns the settings for the handshake. */
  chooseTls(port: number, serverName: string | undefined): TlsChoice | 'close' | undefined
  /** Claims a port before it is bound. Rejects if the port belongs to another process. */
  claim(port: PortName): Promise<void>
  release(port: PortName): void
  /** Called if a retry has bound the port or has failed in another way. */
  onChange(): void
}

/** Returns the message of the operating system for an error. */
function problemOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.cause instanceof Error ? error.cause.message : error.message
}

export class ListenerPorts {
  readonly #options: PortOptions
  readonly #listeners = new Map<ResourceKey, WantedListener>()
  readonly #ports = new Map<PortName, Port>()
  #isStopped = false

  constructor(options: PortOptions) {
    this.#options = options
  }

  /**
   * Applies a change set. Resolves when every wanted port is bound or has failed. Of a part of the first state,
   * only notes the listeners.
   */
  async update(delta: DesiredDelta, isPart = false): Promise<void> {
    for (const key of delta.removed) this.#listeners.delete(key)
    for (const { resource } of delta.upserted) {
      if (resource.type !== 'listener') continue
      const { protocol } = resource
      const port: PortName = protocol === 'UDP' ? `${resource.port}/udp` : resource.port
      this.#listeners.set(resource.key, { port, protocol, sequence: delta.sequence })
    }
    // While the worker drains, the engine closes the ports.
    if (this.#isStopped || isPart) return
    const wanted = this.#wanted()
    for (const name of wanted.keys()) {
      if (!this.#ports.has(name))
        this.#ports.set(name, { name, number: Number.parseInt(`${name}`, 10) })
    }
    const settled: Promise<void>[] = []
    for (const port of this.#ports.values()) {
      // A port that waits for a retry has already failed, so do not wait for it.
      if (wanted.has(port.name) && port.retry !== undefined) continue
      const driven = this.#drive(port)
      if (wanted.has(port.name)) settled.push(driven)
    }
    for (const port of this.#ports.values()) this.#configure(port, port.bound)
    await Promise.all(settled)
  }

  #wanted(): Map<PortName, PortUse> {
    const deciding = new Map<PortName, ResourceKey>()
    const ports = new Map<PortName, PortUse>()
    for (const [key, { port, protocol }] of this.#listeners) {
      const other = deciding.get(port)
      if (other !== undefined && compareText(other, key) <= 0) continue
      deciding.set(port, key)
      ports.set(port, useOf(protocol))
    }
    return ports
  }

  #wantedOn(port: PortName): PortUse | undefined {
    return this.#isStopped ? undefined : this.#wanted().get(port)
  }

  /** Binds or unbinds a port as wanted, with one attempt at a time. */
  #drive(port: Port): Promise<void> {
    port.running ??= this.#bring(port).finally(() => {
      port.running = undefined
    })
    return port.running
  }

  async #bring(port: Port): Promise<void> {
    clearTimeout(port.retry)
    port.retry = undefined
    for (;;) {
      const wanted = this.#wantedOn(port.name)
      if (wanted === port.bound) break
      if (wanted === undefined) await this.#unbind(port)
      else if (!(await this.#bind(port, wanted))) return
    }
    if (port.bound === undefined) this.#ports.delete(port.name)
  }

  async #bind(port: Port, use: PortUse): Promise<boolean> {
    const { claim, release } = this.#options
    try {
      if (port.bound === undefined) await claim(port.name)
      else await this.#close(port)
      port.bound = undefined
      await this.#open(port, use)
      port.bound = use
      port.problem = undefined
      return true
    } catch (error) {
      release(port.name)
      port.problem = problemOf(error)
      port.retry = setTimeout(() => this.#tryAgain(port), retryMs)
      return false
    }
  }

  #configure({ number }: Port, use: PortUse | undefined): void {
    const { engine, settings } = this.#options
    if (use !== undefined && use !== 'UDP') engine.configure(number, settings(number, use))
  }

  #open(port: Port, use: PortUse): Promise<unknown> {
    const { engine, chooseTls } = this.#options
    const { number } = port
    this.#configure(port, use)
    switch (use) {
      case 'HTTP':
        return engine.listen(number)
      case 'TLS':
        return engine.listen(number, undefined, (name) => chooseTls(number, name))
      case 'TCP':
        return engine.listenStream(number)
      case 'UDP':
        return engine.listenDatagrams(number)
    }
  }

  #close({ name, number }: Port): Promise<void> {
    const { engine } = this.#options
    return name === number ? engine.unlisten(number) : engine.unlistenDatagrams(number)
  }

  async #tryAgain(port: Port): Promise<void> {
    const before = port.problem
    await this.#drive(port)
    if (port.problem !== before) this.#options.onChange()
  }

  async #unbind(port: Port): Promise<void> {
    port.bound = undefined
    await this.#close(port)
    this.#options.release(port.name)
  }

  bound(): PortName[] {
    return [...this.#ports.values()].filter((port) => port.bound).map((port) => port.name)
  }

  /** Returns the ports that are wanted but not bound. */
  unbound(): PortName[] {
    const bound = new Set(this.bound())
    return [...this.#wanted().keys()].filter((port) => !bound.has(port))
  }

  rejections(): WorkerRejection[] {
    const rejected: WorkerRejection[] = []
    const wanted = this.#wanted()
    for (const [key, { port, protocol, sequence }] of this.#listeners) {
      const serving = wanted.get(port)
      const problem =
        serving === useOf(protocol)
          ? this.#ports.get(port)?.problem
          : `another listener serves ${serving} on it`
      if (problem !== undefined) {
        const { code, message } = portError(port, problem)
        rejected.push({ key, sequence, code, message })
      }
    }
    return rejected
  }

  /** Stops retrying. Ports stay as they are. */
  stop(): void {
    this.#isStopped = true
    for (const port of this.#ports.values()) clearTimeout(port.retry)
  }
}

/**
 * Which ports a worker holds, driven by the listeners that it was sent. A port that cannot be bound
 * stops no other; its listeners are rejected, and it is tried again until it works or nobody wants
 * it any more.
 *
 *   wanted  ---bind---> bound        bound, no listener left ---unlisten---> gone
 *     |  ^                |  ^
 *   fails |  after a      +--+ plaintext becomes TLS, or the reverse: unlisten, bind
 *     v  |   second
 *    waiting
 *
 * A port is plaintext or TLS. Where listeners of several Gateways disagree, the one with the smallest
 * key decides, and those of the other protocol are rejected.
 */
import { GatewayError } from '../errors.ts'
import { compareText } from '../model/names.ts'
import type { DesiredDelta, ListenerResource, ResourceKey } from '../model/resources.ts'
import type { Engine, TlsChoice } from './engine/types.ts'
import type { WorkerRejection } from './worker-messages.ts'

const retryMs = 1_000

type PortProtocol = 'HTTP' | 'HTTPS'

function isServed(protocol: ListenerResource['protocol']): protocol is PortProtocol {
  return protocol === 'HTTP' || protocol === 'HTTPS'
}

interface WantedListener {
  readonly port: number
  /** Position of the change set that brought it. */
  readonly sequence: number
  readonly protocol: ListenerResource['protocol']
}

interface Port {
  readonly number: number
  /** Undefined while it is not bound. */
  bound: PortProtocol | undefined
  /** Why the last attempt failed. */
  problem: string | undefined
  retry: NodeJS.Timeout | undefined
  /** The attempt that is under way. */
  running: Promise<void> | undefined
}

export interface PortOptions {
  readonly engine: Pick<Engine, 'listen' | 'unlisten'>
  /** Asked at each handshake on a TLS port. */
  chooseTls(port: number, serverName: string | undefined): TlsChoice | undefined
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
    for (const number of wanted.keys())
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

  #wanted(): Map<number, PortProtocol> {
    const deciding = new Map<number, ResourceKey>()
    const ports = new Map<number, PortProtocol>()
    for (const [key, { port, protocol }] of this.#listeners) {
      if (!isServed(protocol)) continue
      const other = deciding.get(port)
      if (other !== undefined && compareText(other, key) <= 0) continue
      deciding.set(port, key)
      ports.set(port, protocol)
    }
    return ports
  }

  #wantedOn(port: number): PortProtocol | undefined {
    return this.#isStopped ? undefined : this.#wanted().get(port)
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
    for (;;) {
      const wanted = this.#wantedOn(port.number)
      if (wanted === port.bound) break
      if (wanted === undefined) await this.#unbind(port)
      else if (!(await this.#bind(port, wanted))) return
    }
    if (port.bound === undefined) this.#ports.delete(port.number)
  }

  async #bind(port: Port, protocol: PortProtocol): Promise<boolean> {
    const { engine, claim, release, chooseTls } = this.#options
    const { number } = port
    try {
      if (port.bound === undefined) await claim(number)
      else await engine.unlisten(number)
      port.bound = undefined
      const tls = (serverName: string | undefined) => chooseTls(number, serverName)
      await engine.listen(number, undefined, protocol === 'HTTPS' ? tls : undefined)
      port.bound = protocol
      port.problem = undefined
      return true
    } catch (error) {
      release(number)
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
    port.bound = undefined
    await this.#options.engine.unlisten(port.number)
    this.#options.release(port.number)
  }

  bound(): number[] {
    return [...this.#ports.values()].filter((port) => port.bound).map((port) => port.number)
  }

  /** Wanted and not bound. */
  unbound(): number[] {
    const bound = new Set(this.bound())
    return [...this.#wanted().keys()].filter((port) => !bound.has(port))
  }

  /** Listeners that are not served, with the reason. */
  rejections(): WorkerRejection[] {
    const rejected: WorkerRejection[] = []
    const wanted = this.#wanted()
    for (const [key, { port, protocol, sequence }] of this.#listeners) {
      const serving = wanted.get(port)
      const problem =
        serving === protocol
          ? this.#ports.get(port)?.problem
          : `another listener serves ${serving} on it`
      if (!isServed(protocol)) {
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
  return { number, bound: undefined, problem: undefined, retry: undefined, running: undefined }
}

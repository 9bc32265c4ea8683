import { GatewayError } from '../../../ground/errors/index.ts'
import { UnreadBytes } from '../bytes/unread-bytes.ts'
import type { EngineParts } from '../contracts/engine-parts.ts'
import type { UpstreamHandler, UpstreamStream } from '../contracts/upstream.ts'
import { connectTimeout } from '../limits/engine-limits.ts'
import { dialError, lostError } from '../sockets/dial.ts'
import { type OpeningOwner, openTransport } from '../sockets/open-transport.ts'
import { forBytes, raceForBytes } from '../sockets/raw-address.ts'
import type { Transport } from '../sockets/transport.ts'
import type { ConnectOptions, UpstreamAddress } from '../sockets/upstream-address.ts'
import { Timer, type TimerOwner } from '../time/timer-wheel.ts'

type State = 'connecting' | 'waiting' | 'tunnel' | 'closed'

/**
 * The connection to the destination of a CONNECT. It reports a response with 200 once it is connected, and then
 * carries bytes both ways. Nothing is read from the destination before the tunnel has begun.
 */
export class TunnelConnection implements UpstreamStream, OpeningOwner, TimerOwner {
  readonly #parts: EngineParts
  readonly #handler: UpstreamHandler
  #address: UpstreamAddress
  readonly transport: Transport
  readonly framesBodies = false
  readonly isIdle = false
  readonly isUnprocessed = false
  readonly wasOverLimit = false
  readonly served = 0
  readonly hasResponded = false
  readonly lostTick = undefined
  readonly serial: number
  wasReset = false
  readonly #timer = new Timer(this)
  readonly #startedAt: number
  #state: State = 'connecting'
  /** Bytes that arrived before the tunnel began, although reading was paused. */
  readonly #early = new UnreadBytes()
  #hasEnded = false

  constructor(
    parts: EngineParts,
    address: UpstreamAddress,
    handler: UpstreamHandler,
    { connectTimeoutMs, race }: ConnectOptions,
    isPlain: boolean,
  ) {
    this.#parts = parts
    this.#handler = handler
    this.#address = forBytes(address, isPlain)
    this.#startedAt = parts.clock.now()
    this.serial = ++parts.counters.upstreamConnectionsTotal
    parts.counters.upstreamConnectionsOpen++
    parts.counters.tunnelsOpen++
    this.transport = openTransport(parts, {
      address: this.#address,
      race: race && raceForBytes(race, isPlain),
      reads: 'shared',
      owner: this,
    })
    parts.timers.arm(this.#timer, connectTimeout(connectTimeoutMs))
  }

  get sink(): Transport {
    return this.transport
  }

  get tunnelEnd(): Transport {
    return this.transport
  }

  get backlog(): number {
    return this.transport.backlog
  }

  onAlternateAddress(address: UpstreamAddress): void {
    this.#address = address
    this.#handler.onAlternateAddress(address)
  }

  onReady(): void {
    if (this.#state !== 'connecting') return
    const { clock, onUpstreamConnected, timers } = this.#parts
    onUpstreamConnected((clock.now() - this.#startedAt) / 1_000)
    timers.disarm(this.#timer)
    this.#state = 'waiting'
    this.transport.pause()
    const handler = this.#handler
    handler.responseHead.compose(200, [])
    handler.responseSource.start('none', 0, false)
    handler.onResponseHead(this)
  }

  startTunnel(): void {
    this.#state = 'tunnel'
    this.transport.resume()
    const early = this.#early.take()
    if (early.length > 0) this.#handler.onTunnelBytes(early, 0, early.length)
    if (this.#hasEnded) this.#handler.onTunnelEnd()
  }

  onBytes(bytes: Buffer, start: number, end: number): void {
    if (this.#state === 'tunnel') this.#handler.onTunnelBytes(bytes, start, end)
    else this.#early.copy(bytes, start, end)
  }

  onEnd(): void {
    this.#hasEnded = true
    if (this.#state === 'tunnel') this.#handler.onTunnelEnd()
  }

  onDrain(): void {
    if (this.#state === 'tunnel') this.#handler.onUpstreamDrain()
  }

  onClose(error: Error | undefined): void {
    if (this.#state === 'connecting') this.#fail(dialError(this.#address, error))
    else this.#fail(lostError(error), error !== undefined)
  }

  onTimer(): void {
    this.#fail(new GatewayError('connect_timeout'))
  }

  #fail(error: GatewayError, wasReset = false): void {
    if (this.#state === 'closed') return
    this.wasReset = wasReset
    const { host, port } = this.#address
    this.#close()
    this.transport.destroy()
    this.#handler.onUpstreamFailure(this, error.at(`endpoint ${host}:${port}`))
  }

  /** The destination gets no request: what the client sends follows in the tunnel. */
  use(): void {}
  sendHead(): void {}
  sendRequest(): void {}
  resumeBody(): void {}

  pause(): void {
    this.transport.pause()
  }

  release(): void {
    this.close()
  }

  /** Drops the connection. The destination sees an error unless it has ended its stream. */
  close(): void {
    if (this.#state === 'closed') return
    const isCut = this.#state === 'tunnel' && !this.#hasEnded
    this.#close()
    if (isCut) this.transport.reset()
    else this.transport.destroy()
  }

  #close(): void {
    this.#state = 'closed'
    this.#early.clear()
    this.#parts.timers.disarm(this.#timer)
    this.#parts.counters.upstreamConnectionsOpen--
    this.#parts.counters.tunnelsOpen--
  }
}

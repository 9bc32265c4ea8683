import { GatewayError } from '../../../ground/errors/index.ts'
import { INCOMPLETE } from '../../core/index.ts'
import type { ReadBuffer } from '../bytes/read-buffers.ts'
import { UnreadBytes } from '../bytes/unread-bytes.ts'
import type { EngineParts } from '../contracts/engine-parts.ts'
import type { ConnectionOwner, UpstreamHandler, UpstreamStream } from '../contracts/upstream.ts'
import { connectTimeout, idleTimeoutMs } from '../limits/engine-limits.ts'
import { HeadLoan } from '../message/head-loan.ts'
import type { FramingFields } from '../message/head-output.ts'
import { interimLimit } from '../message/head-reader.ts'
import { refusedResponse } from '../message/refusals.ts'
import type { RequestHeadView } from '../message/request-head.ts'
import { dialError, lostError } from '../sockets/dial.ts'
import { type OpeningOwner, openTransport } from '../sockets/open-transport.ts'
import type { Transport } from '../sockets/transport.ts'
import type { ConnectOptions, UpstreamAddress } from '../sockets/upstream-address.ts'
import { currentLoopTick } from '../time/loop-ticks.ts'
import { Timer, type TimerOwner } from '../time/timer-wheel.ts'
import { idleLimit } from './keep-alive.ts'
import {
  bodyKind,
  type DeferredEnd,
  isRefusal,
  mustDeliver,
  switchesAsAsked,
} from './response-framing.ts'

type State = 'connecting' | 'idle' | 'head' | 'body' | 'tunnel' | 'closed'

/** One HTTP/1.1 connection to an upstream, with at most one request at a time. */
export class UpstreamConnection implements UpstreamStream, OpeningOwner, TimerOwner {
  readonly #parts: EngineParts
  #owner: ConnectionOwner<UpstreamConnection>
  /** The buffer that bytes are read into; undefined if each read has its own buffer. */
  readonly #buffer: ReadBuffer | undefined
  readonly #loan: HeadLoan | undefined
  readonly transport: Transport
  readonly sink: Transport
  readonly tunnelEnd: Transport
  readonly framesBodies = false
  isUnprocessed = false
  readonly wasOverLimit = false
  readonly #timer = new Timer(this)
  readonly #startedAt: number
  #handler: UpstreamHandler | undefined
  #state: State = 'connecting'
  /** Bytes that arrived before they could be used. */
  readonly #held = new UnreadBytes()
  /** Set if the connection has ended while bytes were held, which are delivered first. */
  #deferredEnd: DeferredEnd | undefined
  /** Offset at which reading the incomplete head continues. */
  #resume = 0
  #interims = 0
  #mayReuse = true
  /** How long the connection stays idle before it is closed. */
  #idleMs = idleTimeoutMs
  #idleSince = 0
  /** Incremented for each request: during a call of the handler, its next request may begin here. */
  #generation = 0
  /** Number of requests with a complete response. */
  served = 0
  /** Whether a byte of the current response has arrived. */
  hasResponded = false
  lostTick: number | undefined
  readonly serial: number

  constructor(
    parts: EngineParts,
    owner: ConnectionOwner<UpstreamConnection>,
    handler: UpstreamHandler,
    { connectTimeoutMs, race, isLongLived = false }: ConnectOptions,
  ) {
    this.#parts = parts
    this.#owner = owner
    this.#handler = handler
    this.#buffer = isLongLived ? undefined : parts.readBuffers.lease()
    this.#loan = this.#buffer && new HeadLoan(this.#buffer.memory)
    this.#startedAt = parts.clock.now()
    const reads = this.#buffer ?? 'events'
    this.transport = openTransport(parts, { address: owner.address, race, reads, owner: this })
    this.sink = this.transport
    this.tunnelEnd = this.transport
    parts.timers.arm(this.#timer, connectTimeout(connectTimeoutMs))
    this.serial = ++parts.counters.upstreamConnectionsTotal
    parts.counters.upstreamConnectionsOpen++
  }

  get backlog(): number {
    return this.transport.backlog
  }

  sendHead(head: string): void {
    this.transport.startWriteBuffer()
    this.transport.appendText(head)
  }

  sendRequest(
    request: RequestHeadView,
    framing: FramingFields,
    upgrade: string | undefined,
    expects: boolean,
  ): void {
    this.transport.startWriteBuffer()
    request.writeTo(this.transport, framing, upgrade, expects)
  }

  pause(): void {
    this.transport.pause()
  }

  get isIdle(): boolean {
    return this.#state === 'idle'
  }

  /** Begins the next request on an idle connection. */
  use(handler: UpstreamHandler): void {
    this.#parts.timers.disarmLazily(this.#timer)
    this.#begin(handler)
  }

  onAlternateAddress(address: UpstreamAddress): void {
    this.#owner = this.#owner.moved(this, address)
    this.#handler?.onAlternateAddress(address)
  }

  onReady(): void {
    const handler = this.#handler
    if (this.#state !== 'connecting' || handler === undefined) return
    const { clock, onUpstreamConnected, timers } = this.#parts
    onUpstreamConnected((clock.now() - this.#startedAt) / 1_000)
    timers.disarm(this.#timer)
    if (this.#owner.accepts('1.1', this.transport.socket)) this.#begin(handler)
    else this.#fail(new GatewayError('upstream_reset', 'the server selected HTTP/2'), true)
  }

  #begin(handler: UpstreamHandler): void {
    this.#handler = handler
    this.#state = 'head'
    this.#generation++
    this.#mayReuse = true
    this.#resume = 0
    this.#interims = 0
    this.hasResponded = false
    handler.onUpstreamReady(this)
  }

  onBytes(bytes: Buffer, start: number, end: number): void {
    const handler = this.#handler
    if (handler === undefined || this.#state === 'idle') {
      // These bytes must not be taken for the response to a later request. Some servers send 408 and close.
      if (this.isIdle) this.#owner.closedIdle(this.#idleSince)
      this.close()
      return
    }
    this.hasResponded = true
    try {
      if (this.#state === 'tunnel') handler.onTunnelBytes(bytes, start, end)
      else if (this.#state === 'body') this.#readBody(handler, bytes, start, end)
      else this.#readHead(handler, bytes, start, end)
    } catch (thrown) {
      this.#fail(this.#parts.toError(thrown))
    } finally {
      // The next read overwrites the buffer, and may belong to another exchange.
      this.#loan?.end()
    }
  }

  #readHead(handler: UpstreamHandler, bytes: Buffer, start: number, end: number): void {
    let from = bytes
    let at = start
    let to = end
    if (this.#held.size > 0) {
      this.#held.add(bytes, start, end)
      from = this.#held.bytes
      at = this.#held.start
      to = this.#held.end
    }
    const reader = this.#parts.reader
    while (at < to) {
      const { maxHeadBytes } = this.#parts.limits
      const code = reader.readResponse(from, at, to, maxHeadBytes, this.#resume)
      this.#resume = code === INCOMPLETE ? reader.resume : 0
      if (code === INCOMPLETE) {
        if (from === this.#held.bytes) this.#held.start = at
        else this.#held.copy(from, at, to)
        return
      }
      this.#held.clear()
      if (code < 0) {
        this.#fail(refusedResponse(code))
        return
      }
      const loan = this.#loan
      if (from === loan?.memory) handler.responseHead.borrow(reader, loan, at)
      else handler.responseHead.load(reader, from, at)
      at += reader.headLength
      if (handler.responseHead.status >= 200 || handler.responseHead.status === 101) {
        this.#takeHead(handler, from, at, to)
        return
      }
      if (++this.#interims > interimLimit) {
        this.#fail(new GatewayError('upstream_malformed', 'too many interim responses'))
        return
      }
      const generation = this.#generation
      handler.onInterim()
      if (this.#generation !== generation || this.#handler === undefined) return
    }
  }

  /** Called when the final head has been read. Bytes after it are the body, or must not be there. */
  #takeHead(handler: UpstreamHandler, bytes: Buffer, start: number, end: number): void {
    const head = handler.responseHead
    if (head.status === 101 && !switchesAsAsked(handler, head)) {
      this.#fail(new GatewayError('upstream_upgrade'))
      return
    }
    const kind = bodyKind(head, handler.isHead)
    handler.responseSource.start(kind, Math.max(0, head.contentLength), false)
    // Servers state the same timeout in all responses.
    if (this.served === 0) this.#idleMs = idleLimit(head.keepAlive)
    const isPersistent = head.isPersistent && this.#idleMs > 0
    this.#mayReuse =
      head.status !== 101 && isPersistent && kind !== 'close' && handler.isRequestSent
    if (handler.responseSource.ended && start < end) this.#mayReuse = false
    this.#state = 'body'
    const generation = this.#generation
    handler.onResponseHead(this)
    if (this.#generation !== generation || this.#handler === undefined) return
    if (this.#isTunnel()) {
      if (start < end) handler.onTunnelBytes(bytes, start, end)
    } else if (head.status === 101) this.#hold(bytes, start, end)
    else this.#readBody(handler, bytes, start, end)
    if (this.#generation !== generation || this.#handler === undefined) return
    handler.onReadEnd()
  }

  #isTunnel(): boolean {
    return this.#state === 'tunnel'
  }

  #readBody(handler: UpstreamHandler, bytes: Buffer, start: number, end: number): void {
    const body = handler.responseSource
    let at = start
    if (handler.responseHead.status === 101) {
      this.#hold(bytes, at, end)
      return
    }
    if (!body.ended) {
      if (!body.wantsBytes) {
        this.#hold(bytes, at, end)
        return
      }
      if (at === end) return
      at = body.feed(bytes, at, end)
      if (at < 0) {
        this.#fail(refusedResponse(at))
        return
      }
      if (body.blocked) this.transport.pause()
    }
    if (body.ended && at < end) this.#mayReuse = false
    handler.onResponseBody(this)
  }

  #hold(bytes: Buffer, start: number, end: number): void {
    this.transport.pause()
    this.#held.copy(bytes, start, end)
  }

  resumeBody(): void {
    const handler = this.#handler
    if (handler !== undefined && this.#held.size > 0 && this.#state === 'body') {
      const held = this.#held.take()
      const generation = this.#generation
      try {
        this.#readBody(handler, held, 0, held.length)
      } catch (thrown) {
        this.#fail(this.#parts.toError(thrown))
      }
      if (this.#generation !== generation || this.#handler === undefined) return
      if (this.#held.size > 0) return
      if (this.#deferredEnd !== undefined) {
        if (!handler.responseSource.ended) this.#endInput(this.#deferredEnd)
        return
      }
      if (handler.responseSource.blocked) return
    }
    this.transport.resume()
  }

  startTunnel(): void {
    this.#state = 'tunnel'
    this.transport.resume()
    const held = this.#held.take()
    if (held.length > 0) this.#handler?.onTunnelBytes(held, 0, held.length)
    if (this.#deferredEnd === undefined) return
    this.#handler?.onTunnelEnd()
    if (this.transport.closed) this.#fail(this.#deferredEnd.error)
  }

  /**
   * Called when the response is complete. Returns the connection to the pool, or closes it if reuse is
   * not safe (bytes after the body, a request that was not sent completely, no keep-alive).
   */
  release(now = this.#parts.clock.now()): void {
    const handler = this.#handler
    if (this.#state === 'closed') return
    const isWhole = handler?.responseSource.ended === true && handler.isRequestSent
    const isClean = isWhole && this.#buffer !== undefined && this.lostTick === undefined
    if (!this.#mayReuse || !isClean || this.#held.size > 0 || this.transport.needsDrain) {
      this.close()
      return
    }
    this.served++
    this.#handler = undefined
    this.#state = 'idle'
    this.transport.resume()
    this.#idleSince = now
    this.#owner.keep(this)
    this.#parts.timers.arm(this.#timer, Math.min(this.#idleMs, this.#owner.idleLimitMs), now)
  }

  /** Drops the connection. The handler is not called again. */
  close(): void {
    if (this.#state === 'closed') return
    this.#giveBackBuffer()
    this.#state = 'closed'
    this.#handler = undefined
    this.#held.clear()
    this.#parts.timers.disarm(this.#timer)
    this.#parts.counters.upstreamConnectionsOpen--
    this.#owner.closed(this)
    this.transport.destroy()
  }

  /** Gives the buffer back once neither the kernel nor a client references it. */
  #giveBackBuffer(): void {
    const buffer = this.#buffer
    if (buffer === undefined) return
    const own = this.transport.isPending ? undefined : this.transport.socket
    this.#parts.readBuffers.giveBackAfterClose(buffer, this.#handler?.bufferHolder ?? own)
  }

  onEnd(): void {
    if (this.#state === 'tunnel') this.#handler?.onTunnelEnd()
    else if (this.#state === 'connecting') this.#fail(dialError(this.#owner.address, undefined))
    else this.#endInput({ error: new GatewayError('upstream_reset'), isOrderly: true })
  }

  onClose(error: Error | undefined): void {
    if (this.#state === 'connecting') this.#fail(dialError(this.#owner.address, error))
    else if (this.#state === 'tunnel') this.#fail(lostError(error))
    else if (this.#deferredEnd === undefined) {
      this.#endInput({ error: lostError(error), isOrderly: isRefusal(this.#handler) })
    }
  }

  /**
   * Ends the response, or fails it if it is incomplete. Bytes that are held are delivered first: a TLS
   * socket may have decrypted the last bytes and the end although reading was paused.
   */
  #endInput(end: DeferredEnd): void {
    if (this.isIdle) this.#owner.closedIdle(this.#idleSince)
    const isHead = this.#state !== 'body'
    if (!isHead && mustDeliver(this.#handler, this.#held.size)) this.#deferredEnd = end
    else if (!end.isOrderly || !this.#endsBody()) this.#fail(end.error)
  }

  /** Ends the response at the end of the connection. Returns false if it cannot end there. */
  #endsBody(): boolean {
    const handler = this.#handler
    if (handler === undefined || this.#state !== 'body') return false
    if (!handler.responseSource.finish()) return false
    this.#mayReuse = false
    handler.onResponseBody(this)
    return true
  }

  onDrain(): void {
    this.#handler?.onUpstreamDrain()
  }

  onWriteLost(): void {
    this.lostTick = currentLoopTick()
  }

  onTimer(): void {
    if (this.#state === 'connecting') this.#fail(new GatewayError('connect_timeout'))
    else this.close()
  }

  #fail(error: GatewayError, isUnprocessed = false): void {
    const handler = this.#handler
    this.isUnprocessed = isUnprocessed
    const { host, port } = this.#owner.address
    this.close()
    handler?.onUpstreamFailure(this, error.at(`endpoint ${host}:${port}`))
  }
}

import { GatewayError } from '../../errors.ts'
import type { BodyTransform, HeaderFields } from '../../exchange/exchange.ts'
import type { BodySink } from './body-sink.ts'
import type { EngineParts } from './engine-parts.ts'
import { MessageBody } from './message-body.ts'
import { ResponseHeadView } from './response-head.ts'
import { Timer, type TimerOwner } from './timer-wheel.ts'
import type { UpstreamAddress } from './types.ts'
import type { UpstreamLink, UpstreamUser } from './upstream-link.ts'

/** A request of the data plane's own. */
export interface CallRequest {
  readonly address: UpstreamAddress
  /** As HTTP/1.1 has it, with its empty line and the length of the body. */
  readonly head: string
  readonly body: Buffer | undefined
  /** Milliseconds to connect; 0 = the engine's default. */
  readonly connectTimeoutMs: number
  /** Milliseconds for the whole answer; 0 = none. */
  readonly timeoutMs: number
  /** The answer may take hours and be silent: it gets a connection that holds no read buffer. */
  readonly isLong?: boolean
}

/** What becomes of a call: a head and bytes until the end, or at any time a failure. */
export interface CallListener {
  /** The headers can be read during the call only. */
  onHead(status: number, headers: HeaderFields): void
  /** The bytes are the listener's. */
  onBytes(bytes: Uint8Array): void
  onEnd(): void
  onFailure(error: GatewayError): void
}

export interface Call {
  /** No bytes come before `resume`, but what is under way. */
  pause(): void
  resume(): void
  /** Gives the call up; the listener hears nothing more. */
  close(): void
}

/** One request to an upstream and its answer, on connections that are shared with exchanges. */
export class UpstreamCall implements Call, UpstreamUser, TimerOwner {
  readonly #parts: EngineParts
  readonly #request: CallRequest
  readonly #listener: CallListener
  readonly response = undefined
  readonly responseHead = new ResponseHeadView()
  readonly responseBody: MessageBody
  readonly isHead = false
  readonly upgrade = undefined
  readonly borrower = undefined
  readonly #timer = new Timer(this)
  #link: UpstreamLink | undefined
  #hasRetried = false
  #isPaused = false
  #isOver = false
  isRequestSent = false

  /** Throws `overloaded` where there is no room for a connection. */
  constructor(parts: EngineParts, request: CallRequest, listener: CallListener) {
    this.#parts = parts
    this.#request = request
    this.#listener = listener
    this.responseBody = new MessageBody(parts.reader, {
      resumeBody: () => this.#link?.resumeBody(),
    })
    if (request.timeoutMs > 0) parts.timers.arm(this.#timer, request.timeoutMs)
    this.#connect(false)
  }

  #connect(isFresh: boolean): void {
    const { address, connectTimeoutMs, isLong = false } = this.#request
    this.isRequestSent = false
    const link = this.#parts.pools.acquire(address, this, connectTimeoutMs, isFresh, isLong)
    this.#link = link
    if (link.isIdle) link.use(this)
  }

  onUpstreamReady(link: UpstreamLink): void {
    const { head, body } = this.#request
    this.#link = link
    link.sendHead(head)
    if (body !== undefined) link.sink.appendBytes(body, 0, body.length)
    this.isRequestSent = true
    link.sink.endBody('')
    link.sink.flush()
  }

  onInterim(): void {
    // Nobody waits for it.
  }

  onResponseHead(): void {
    const { status, headers } = this.responseHead
    this.#listener.onHead(status, headers)
    if (this.#isOver) return
    this.responseBody.through(this.#tap)
    this.responseBody.flow(this.#sink, false, false)
  }

  readonly #tap: BodyTransform = {
    push: (bytes) => {
      if (!this.#isOver) this.#listener.onBytes(bytes)
    },
    end: () => {
      if (this.#isOver) return
      this.#isOver = true
      this.#parts.timers.disarm(this.#timer)
      this.#listener.onEnd()
    },
  }

  /** Nothing is written anywhere; it only says whether more may come. */
  readonly #sink: BodySink = {
    appendText: () => {},
    appendBytes: () => {},
    endBody: () => {},
    flush: () => !this.#isPaused,
  }

  onReadEnd(): void {
    // Everything has been handed on.
  }

  onResponseBody(link: UpstreamLink): void {
    if (!this.responseBody.ended) return
    this.#link = undefined
    link.release()
  }

  /** The same as for exchanges: an idle connection may close while we write to it. */
  onUpstreamFailure(link: UpstreamLink, error: GatewayError): void {
    if (link !== this.#link && this.#link !== undefined) return
    this.#link = undefined
    if (this.#isOver) return
    const wasIdle = error.code === 'upstream_reset' && link.served > 0 && !link.hasAnswered
    if ((wasIdle || link.isUnprocessed) && !this.#hasRetried) {
      this.#hasRetried = true
      try {
        this.#connect(true)
        return
      } catch (thrown) {
        if (!(thrown instanceof GatewayError)) throw thrown
      }
    }
    this.#fail(error)
  }

  onUpstreamDrain(): void {
    // The request is in memory anyway.
  }

  onTunnelBytes(): void {
    // Calls never ask for an upgrade.
  }

  onTunnelEnd(): void {
    // Calls never ask for an upgrade.
  }

  onTimer(): void {
    const link = this.#link
    this.#link = undefined
    link?.close()
    this.#fail(new GatewayError('upstream_timeout'))
  }

  #fail(error: GatewayError): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#parts.timers.disarm(this.#timer)
    this.#listener.onFailure(error)
  }

  pause(): void {
    this.#isPaused = true
  }

  resume(): void {
    if (!this.#isPaused) return
    this.#isPaused = false
    if (!this.#isOver) this.responseBody.drained()
  }

  close(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#parts.timers.disarm(this.#timer)
    const link = this.#link
    this.#link = undefined
    link?.close()
  }
}

import { GatewayError } from '../../../ground/errors/index.ts'
import type { EngineParts } from '../contracts/engine-parts.ts'
import type { ForwardOptions } from '../contracts/requests.ts'
import type { UpstreamHandler, UpstreamStream } from '../contracts/upstream.ts'
import type { MessageBody } from '../message/message-body.ts'
import type { ConnectOptions, UpstreamAddress } from '../sockets/upstream-address.ts'
import { currentLoopTick } from '../time/loop-ticks.ts'
import { TunnelConnection } from './tunnel-connection.ts'

type AttemptOptions = ConnectOptions & Pick<ForwardOptions, 'tunnel'>

/** A handler that sends a request with a body. */
interface Sender extends UpstreamHandler {
  readonly requestBody: MessageBody
  /** Whether the whole request can be resent. */
  readonly isReplayable: boolean
  /** Whether sending the request twice does no harm. */
  readonly isIdempotent: boolean
}

/** The upstream stream of an exchange, from acquiring it to giving it back. */
export class Attempt {
  readonly #parts: EngineParts
  readonly #sender: Sender
  #address: UpstreamAddress | undefined
  #options: AttemptOptions = { connectTimeoutMs: 0 }
  readonly #resends = new Resends()
  stream: UpstreamStream | undefined

  constructor(parts: EngineParts, handler: Sender) {
    this.#parts = parts
    this.#sender = handler
  }

  /**
   * Starts an attempt; `onUpstreamReady` is called, perhaps at once. Returns an error if memory is too
   * short for a connection.
   */
  start(address: UpstreamAddress, options: AttemptOptions): GatewayError | undefined {
    this.drop()
    this.#address = address
    this.#options = options
    this.#resends.reset()
    try {
      this.#connect(address, undefined)
      return undefined
    } catch (thrown) {
      if (isOverload(thrown)) return thrown
      throw thrown
    }
  }

  /** Retries on another connection if that is safe. Returns false otherwise. */
  retry(lostStream: UpstreamStream, error: GatewayError): boolean {
    if (!this.#sender.isReplayable || this.#address === undefined) return false
    if (!this.#resends.admits(lostStream, error, this.#sender.isIdempotent)) return false
    const address = this.#address
    return unlessOverloaded(() => this.#connect(address, lostStream))
  }

  #connect(address: UpstreamAddress, after: UpstreamStream | undefined): void {
    const { requestBody } = this.#sender
    const { tunnel } = this.#options
    if (tunnel !== undefined) {
      const isPlain = tunnel.isPlain === true
      this.stream = new TunnelConnection(this.#parts, address, this.#sender, this.#options, isPlain)
      return
    }
    requestBody.rewind()
    const stream = this.#parts.upstreams.acquire(address, this.#sender, this.#options, after)
    this.stream = stream
    this.#resends.onAcquired(stream, requestBody.kind !== 'none')
    if (stream.isIdle) stream.use(this.#sender)
  }

  /** Called when another address of the name was connected to: a new connection uses it as well. */
  onAlternateAddress(address: UpstreamAddress): void {
    this.#address = address
  }

  /** Keeps the connection from reading while the client socket still references its read buffer. */
  pin(): void {
    this.stream?.pause()
  }

  /** Called when the response is complete and its bytes are unreferenced. `now`: the time, if known. */
  release(now?: number): void {
    const { stream } = this
    if (stream === undefined) return
    this.stream = undefined
    stream.release(now)
  }

  /** Abandons the request in any state, and closes its stream. */
  drop(): void {
    const { stream } = this
    if (stream === undefined) return
    this.stream = undefined
    stream.close()
  }
}

/** Maximum number of times that a request is resent after upstreams have not processed it. */
const maxUnprocessed = 3

/**
 * Decides whether a request is resent on another connection after its connection was lost. A
 * kept-alive connection may close while we write to it, which does no harm if the request is
 * idempotent (RFC 9110 9.2.2, RFC 9112 9.3.1) or cannot have been seen. HTTP/2 tells which requests
 * were not processed: by GOAWAY, or by a reset with REFUSED_STREAM (RFC 9113 8.7).
 */
export class Resends {
  /** The tick in which a kept-alive connection was taken; -1 if that is not relevant. */
  #acquiredTick = -1
  #hasReplacedKept = false
  #unprocessed = 0

  /** Called when a new attempt begins. */
  reset(): void {
    this.#hasReplacedKept = false
    this.#unprocessed = 0
  }

  /** Called when a stream was acquired. `isRisky`: sending the request twice could do harm. */
  onAcquired(stream: UpstreamStream, isRisky: boolean): void {
    this.#acquiredTick = stream.isIdle && isRisky ? currentLoopTick() : -1
  }

  /** Returns whether the request may be resent. `isIdempotent`: the request may be sent twice. */
  admits(lostStream: UpstreamStream, error: GatewayError, isIdempotent: boolean): boolean {
    if (lostStream.isUnprocessed) {
      // New connections respect the limit that is known now, so this does not repeat.
      return lostStream.wasOverLimit || this.#unprocessed++ < maxUnprocessed
    }
    if (this.#hasReplacedKept || !this.#diedIdle(lostStream, error, isIdempotent)) return false
    this.#hasReplacedKept = true
    return true
  }

  #diedIdle(lostStream: UpstreamStream, { code }: GatewayError, isIdempotent: boolean): boolean {
    if (code !== 'upstream_reset' || lostStream.served === 0 || lostStream.hasResponded)
      return false
    return isIdempotent || this.#acquiredTick === (lostStream.lostTick ?? currentLoopTick())
  }
}

/** Whether no connection could be made because memory is short. */
export function isOverload(thrown: unknown): thrown is GatewayError {
  return thrown instanceof GatewayError && thrown.code === 'overloaded'
}

/** Calls `connect`. Returns false if memory is too short for a connection. */
export function unlessOverloaded(connect: () => void): boolean {
  try {
    connect()
    return true
  } catch (thrown) {
    if (isOverload(thrown)) return false
    throw thrown
  }
}

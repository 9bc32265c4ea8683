import type { GatewayError } from '../../../ground/errors/index.ts'
import type { EngineParts } from '../contracts/engine-parts.ts'
import type { UpstreamHandler, UpstreamStream } from '../contracts/upstream.ts'
import type { MessageBody } from '../message/message-body.ts'
import type { ConnectOptions, UpstreamAddress } from '../sockets/upstream-address.ts'
import { isOverload, Resends, unlessOverloaded } from './resends.ts'

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
  #options: ConnectOptions = { connectTimeoutMs: 0 }
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
  start(address: UpstreamAddress, options: ConnectOptions): GatewayError | undefined {
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

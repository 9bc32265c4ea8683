import type { GatewayError } from '../../errors/index.ts'
import type { EngineParts } from '../contracts/engine-parts.ts'
import type { UpstreamHandler, UpstreamStream } from '../contracts/upstream.ts'
import type { MessageBody } from '../message/message-body.ts'
import type { ConnectOptions, UpstreamAddress } from '../sockets/upstream-address.ts'
import { Resends, unlessOverloaded } from './resends.ts'

/** A handler that sends a request with a body. */
interface Sender extends UpstreamHandler {
  readonly requestBody: MessageBody
  /** The whole request can be sent again. */
  readonly isReplayable: boolean
  /** Sending the request twice does no harm. */
  readonly isIdempotent: boolean
}

/** The upstream stream of an exchange, from acquiring it to giving it back. */
export class Attempt {
  readonly #parts: EngineParts
  readonly #sender: Sender
  #address: UpstreamAddress | undefined
  #options: ConnectOptions = { connectTimeoutMs: 0 }
  readonly #resends: Resends
  stream: UpstreamStream | undefined

  constructor(parts: EngineParts, handler: Sender) {
    this.#parts = parts
    this.#sender = handler
    this.#resends = new Resends(parts.loopTicks)
  }

  /** A new attempt; `onUpstreamReady` follows, perhaps at once. Throws `overloaded`. */
  start(address: UpstreamAddress, options: ConnectOptions): void {
    this.drop()
    this.#address = address
    this.#options = options
    this.#resends.reset()
    this.#connect(address, undefined)
  }

  /** Begins once more on another connection if that is safe; else returns false. */
  retry(died: UpstreamStream, error: GatewayError): boolean {
    if (!this.#sender.isReplayable || this.#address === undefined) return false
    if (!this.#resends.admits(died, error, this.#sender.isIdempotent)) return false
    const address = this.#address
    return unlessOverloaded(() => this.#connect(address, died))
  }

  #connect(address: UpstreamAddress, after: UpstreamStream | undefined): void {
    const { requestBody } = this.#sender
    requestBody.rewind()
    const { upstreams: links } = this.#parts
    const stream = links.acquire(address, this.#sender, this.#options, after)
    this.stream = stream
    this.#resends.onAcquired(stream, requestBody.kind !== 'none')
    if (stream.isIdle) stream.use(this.#sender)
  }

  /** Another address of the name was connected to: a new connection goes there as well. */
  onAlternateAddress(address: UpstreamAddress): void {
    this.#address = address
  }

  /** Does not reuse the connection until the client socket has drained its buffer. */
  pin(): void {
    if (this.stream === undefined) return
    this.stream.isPinned = true
    this.stream.pause()
  }

  /** The response is complete and its bytes are not referenced any more. `now`: the time, if known. */
  release(now?: number): void {
    const { stream } = this
    if (stream === undefined) return
    this.stream = undefined
    stream.isPinned = false
    stream.release(now)
  }

  /** Closes the connection, whatever it was doing. */
  drop(): void {
    const { stream } = this
    if (stream === undefined) return
    this.stream = undefined
    stream.close()
  }
}

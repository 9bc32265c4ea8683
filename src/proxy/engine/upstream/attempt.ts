import { GatewayError } from '../../../errors.ts'
import type { EngineParts } from '../engine-parts.ts'
import type { MessageBody } from '../message/message-body.ts'
import type { ConnectOptions, UpstreamAddress } from './upstream-address.ts'
import type { UpstreamLink, UpstreamUser } from './upstream-link.ts'

/** Who sends a request with a body. */
interface Sender extends UpstreamUser {
  readonly requestBody: MessageBody
  /** The whole request can be sent again. */
  readonly isReplayable: boolean
  /** To do it twice is as good as once. */
  readonly isIdempotent: boolean
}

/** The link that works for an exchange, from acquiring it to giving it back. */
export class Attempt {
  readonly #parts: EngineParts
  readonly #user: Sender
  #address: UpstreamAddress | undefined
  #options: ConnectOptions = { connectTimeoutMs: 0 }
  #hasRetried = false
  /** In which a kept connection was taken for a request with a body; -1 for others. */
  #turn = -1
  link: UpstreamLink | undefined

  constructor(parts: EngineParts, user: Sender) {
    this.#parts = parts
    this.#user = user
  }

  /** A new attempt; `onUpstreamReady` follows, perhaps at once. Throws `overloaded`. */
  start(address: UpstreamAddress, options: ConnectOptions): void {
    this.drop()
    this.#address = address
    this.#options = options
    this.#hasRetried = false
    this.#connect(address, false)
  }

  /**
   * Begins once more on a fresh connection where that is safe: an idle connection may close while
   * we write to it, which harms nobody where the request is idempotent (RFC 9110 9.2.2, RFC 9112
   * 9.3.1) or cannot have been seen, and HTTP/2 tells what was not looked at (RFC 9113 8.7). False
   * where it is not.
   */
  retry(died: UpstreamLink, error: GatewayError): boolean {
    if (this.#hasRetried || !this.#user.isReplayable || this.#address === undefined) return false
    if (!died.isUnprocessed && !this.#diedIdle(died, error)) return false
    this.#hasRetried = true
    try {
      this.#connect(this.#address, true)
      return true
    } catch (thrown) {
      if (isOverload(thrown)) return false
      throw thrown
    }
  }

  #diedIdle(died: UpstreamLink, { code }: GatewayError): boolean {
    if (code !== 'upstream_reset' || died.served === 0 || died.hasAnswered) return false
    return this.#user.isIdempotent || this.#turn === this.#parts.turns.current
  }

  #connect(address: UpstreamAddress, isFresh: boolean): void {
    const { requestBody } = this.#user
    requestBody.rewind()
    const { links } = this.#parts
    const link = links.acquire(address, this.#user, this.#options, isFresh)
    this.link = link
    this.#turn = link.isIdle && requestBody.kind !== 'none' ? this.#parts.turns.current : -1
    if (link.isIdle) link.use(this.#user)
  }

  /** Another address of the name answered first: should the connection be made anew, then there. */
  moved(address: UpstreamAddress): void {
    this.#address = address
  }

  /** The client still reads from the connection's buffer: it must rest. */
  lend(): void {
    if (this.link === undefined) return
    this.link.isLent = true
    this.link.pause()
  }

  /** The response is complete and nobody looks at its bytes any more. `now`: where somebody knows. */
  release(now?: number): void {
    const { link } = this
    if (link === undefined) return
    this.link = undefined
    link.isLent = false
    link.release(now)
  }

  /** Closes the connection, whatever it was doing. */
  drop(): void {
    const { link } = this
    if (link === undefined) return
    this.link = undefined
    link.close()
  }
}

/** No connection could be made for want of memory. */
export function isOverload(thrown: unknown): thrown is GatewayError {
  return thrown instanceof GatewayError && thrown.code === 'overloaded'
}

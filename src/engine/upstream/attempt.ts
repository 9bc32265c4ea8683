import type { GatewayError } from '../../errors.ts'
import type { EngineParts } from '../contracts/engine-parts.ts'
import type { UpstreamLink, UpstreamUser } from '../contracts/upstream.ts'
import type { MessageBody } from '../message/message-body.ts'
import type { ConnectOptions, UpstreamAddress } from '../sockets/upstream-address.ts'
import { Resends, unlessOverloaded } from './resends.ts'

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
  readonly #resends: Resends
  link: UpstreamLink | undefined

  constructor(parts: EngineParts, user: Sender) {
    this.#parts = parts
    this.#user = user
    this.#resends = new Resends(parts.turns)
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
  retry(died: UpstreamLink, error: GatewayError): boolean {
    if (!this.#user.isReplayable || this.#address === undefined) return false
    if (!this.#resends.admits(died, error, this.#user.isIdempotent)) return false
    const address = this.#address
    return unlessOverloaded(() => this.#connect(address, died))
  }

  #connect(address: UpstreamAddress, after: UpstreamLink | undefined): void {
    const { requestBody } = this.#user
    requestBody.rewind()
    const { links } = this.#parts
    const link = links.acquire(address, this.#user, this.#options, after)
    this.link = link
    this.#resends.took(link, requestBody.kind !== 'none')
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

import type { GatewayError } from '../../errors.ts'
import type { EngineParts } from './engine-parts.ts'
import type { MessageBody } from './message-body.ts'
import type { UpstreamAddress } from './types.ts'
import type { UpstreamConnection, UpstreamUser } from './upstream-connection.ts'

/** Who sends a request with a body. */
type Sender = UpstreamUser & { readonly requestBody: MessageBody }

/** The connection that works for an exchange, from acquiring it to giving it back. */
export class Attempt {
  readonly #parts: EngineParts
  readonly #user: Sender
  #address: UpstreamAddress | undefined
  #connectTimeoutMs = 0
  #hasRetried = false
  connection: UpstreamConnection | undefined

  constructor(parts: EngineParts, user: Sender) {
    this.#parts = parts
    this.#user = user
  }

  /** A new attempt; `onUpstreamReady` follows, perhaps at once. */
  start(address: UpstreamAddress, connectTimeoutMs: number): void {
    this.drop()
    this.#address = address
    this.#connectTimeoutMs = connectTimeoutMs
    this.#hasRetried = false
    this.#connect(address, false)
  }

  /**
   * Begins once more on a fresh connection where that is safe: an idle connection may close while
   * we write to it (RFC 9110 9.2.2, RFC 9112 9.3.1). False where it is not.
   */
  retry(died: UpstreamConnection, error: GatewayError, isReplayable: boolean): boolean {
    const wasIdle = error.code === 'upstream_reset' && died.served > 0 && !died.hasAnswered
    if (!wasIdle || this.#hasRetried || !isReplayable || this.#address === undefined) return false
    this.#hasRetried = true
    this.#connect(this.#address, true)
    return true
  }

  #connect(address: UpstreamAddress, isFresh: boolean): void {
    this.#user.requestBody.rewind()
    const { pools } = this.#parts
    const connection = pools.acquire(address, this.#user, this.#connectTimeoutMs, isFresh)
    this.connection = connection
    if (connection.isIdle) connection.use(this.#user)
  }

  /** The client still reads from the connection's buffer: it must rest. */
  lend(): void {
    if (this.connection === undefined) return
    this.connection.isLent = true
    this.connection.transport.pause()
  }

  /** The response is complete and nobody looks at its bytes any more. */
  release(): void {
    const { connection } = this
    if (connection === undefined) return
    this.connection = undefined
    connection.isLent = false
    connection.release()
  }

  /** Closes the connection, whatever it was doing. */
  drop(): void {
    const { connection } = this
    if (connection === undefined) return
    this.connection = undefined
    connection.close()
  }
}

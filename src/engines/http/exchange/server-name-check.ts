import { GrowingBytes } from '../../../ground/base/growing-bytes.ts'
import { GatewayError } from '../../../ground/errors/index.ts'
import { ClientHelloReader } from '../tls/client-hello.ts'

/**
 * Buffers the first bytes of a tunnel until they show that its client begins TLS for the expected name. A client is
 * refused once 32 KiB contain no whole ClientHello. Until then, the window is updated for the buffered bytes
 * (RFC 9113 6.9), so that a ClientHello that is larger than the window can arrive.
 */
export class ServerNameCheck {
  readonly #expected: string
  readonly #reader = new ClientHelloReader()
  /** One buffer, so that many small pieces take no more memory than a few large ones. */
  readonly #held = new GrowingBytes()

  constructor(expected: string) {
    this.#expected = expected.toLowerCase()
  }

  /** Takes bytes of the client. Returns all buffered bytes once the name matches; undefined before that. */
  take(bytes: Buffer): Buffer | GatewayError | undefined {
    this.#held.add(bytes, 0, bytes.length)
    const hello = this.#reader.push(bytes)
    if (hello === 'incomplete') return undefined
    if (hello === 'malformed') return refused('the client does not begin with TLS')
    const name = hello.serverName?.toLowerCase()
    if (name === this.#expected) return this.#held.content
    return refused(name === undefined ? 'TLS without a server name' : `TLS for ${name}`)
  }

  /** Returns the error of a client that ends its stream before its ClientHello is complete. */
  end(): GatewayError {
    return refused('the client ended the tunnel before its ClientHello was complete')
  }
}

const refused = (detail: string) => new GatewayError('server_name_refused', detail)

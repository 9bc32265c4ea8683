import { GatewayError } from '../../../ground/errors/index.ts'
import { ClientHelloReader } from '../tls/client-hello.ts'

/** Buffers the first bytes of a tunnel until they show that its client begins TLS for the expected name. */
export class ServerNameCheck {
  readonly #expected: string
  readonly #reader = new ClientHelloReader()
  readonly #held: Buffer[] = []

  constructor(expected: string) {
    this.#expected = expected.toLowerCase()
  }

  /** Takes bytes of the client. Returns all buffered bytes once the name matches; undefined before that. */
  take(bytes: Buffer): Buffer | GatewayError | undefined {
    const piece = Buffer.from(bytes)
    this.#held.push(piece)
    const hello = this.#reader.push(piece)
    if (hello === 'incomplete') return undefined
    if (hello === 'malformed') return refused('the client does not begin with TLS')
    const name = hello.serverName?.toLowerCase()
    if (name === this.#expected) return Buffer.concat(this.#held)
    return refused(name === undefined ? 'TLS without a server name' : `TLS for ${name}`)
  }

  /** Returns the error of a client that ends its stream before its ClientHello is complete. */
  end(): GatewayError {
    return refused('the client ended the tunnel before its ClientHello was complete')
  }
}

const refused = (detail: string) => new GatewayError('server_name_refused', detail)

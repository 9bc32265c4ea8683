import type { Socket } from 'node:net'
import type { Peer } from '../../exchange/exchange.ts'

/** The addresses of a connection, asked of the system when somebody wants them, and kept. */
export class ConnectionEnds {
  readonly #socket: Socket
  #source: Peer | undefined
  #local: Peer | undefined

  constructor(socket: Socket) {
    this.#socket = socket
  }

  get source(): Peer {
    if (this.#source === undefined) {
      const { remoteAddress, remotePort } = this.#socket
      this.#source = { address: remoteAddress ?? '', port: remotePort ?? 0 }
    }
    return this.#source
  }

  get local(): Peer {
    if (this.#local === undefined) {
      const { localAddress, localPort } = this.#socket
      this.#local = { address: localAddress ?? '', port: localPort ?? 0 }
    }
    return this.#local
  }
}

import type { Socket } from 'node:net'
import type { Peer } from '../../exchange/exchange.ts'
import { canonicalAddress } from './canonical-address.ts'

/** The peer of a socket; its text is asked for again and again. */
export class SocketPeer implements Peer {
  readonly address: string
  readonly port: number
  #text: string | undefined

  constructor(address: string, port: number) {
    this.address = address
    this.port = port
  }

  /** `address:port`, with brackets around IPv6. */
  get text(): string {
    const { address, port } = this
    this.#text ??= address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`
    return this.#text
  }
}

/** What load balancers have told of connections that they forward. */
const announced = new WeakMap<Socket, Peer>()

/** From here on the connection is that of another than the peer of its socket. */
export function announceSource(socket: Socket, source: Peer): void {
  announced.set(socket, source)
}

/** Takes over what is known of the socket below. */
export function inheritSource(socket: Socket, below: Socket): void {
  const source = announced.get(below)
  if (source !== undefined) announced.set(socket, source)
}

/** The client of a connection, as far as its socket and its load balancer tell. */
export function sourceOf(socket: Socket): Peer {
  return announced.get(socket) ?? peerOf(socket)
}

/** The other end of the socket itself. */
export function peerOf({ remoteAddress, remotePort }: Socket): Peer {
  return new SocketPeer(canonicalAddress(remoteAddress ?? ''), remotePort ?? 0)
}

/** The addresses of a connection, read from the system when first needed, then kept. */
export class ConnectionAddresses {
  readonly #socket: Socket
  #source: Peer | undefined
  #local: Peer | undefined

  constructor(socket: Socket) {
    this.#socket = socket
  }

  get source(): Peer {
    this.#source ??= sourceOf(this.#socket)
    return this.#source
  }

  get local(): Peer {
    if (this.#local === undefined) {
      const { localAddress, localPort } = this.#socket
      this.#local = { address: canonicalAddress(localAddress ?? ''), port: localPort ?? 0 }
    }
    return this.#local
  }
}

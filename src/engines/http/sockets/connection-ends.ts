import type { Socket } from 'node:net'
import { hostAndPort } from '../../../ground/base/listen-hosts.ts'
import type { Peer } from '../../../ground/exchange/exchange.ts'
import { canonicalAddress } from './canonical-address.ts'

/** The peer of a socket. Caches its text, which is often needed. */
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
    this.#text ??= hostAndPort(address, port)
    return this.#text
  }
}

/** The clients that PROXY headers name, by the sockets of the load balancers that forward them. */
const announced = new WeakMap<Socket, Peer>()

/** Sets the client of a connection that a load balancer forwards. */
export function announceSource(socket: Socket, source: Peer): void {
  announced.set(socket, source)
}

/** Copies the client of the socket `below` to `socket`. */
export function inheritSource(socket: Socket, below: Socket): void {
  const source = announced.get(below)
  if (source !== undefined) announced.set(socket, source)
}

/** The client of a connection: that of the PROXY header, otherwise the peer of the socket. */
export function sourceOf(socket: Socket): Peer {
  return announced.get(socket) ?? peerOf(socket)
}

/** The peer of the socket itself, which may be a load balancer. */
export function peerOf({ remoteAddress, remotePort }: Socket): Peer {
  return new SocketPeer(canonicalAddress(remoteAddress ?? ''), remotePort ?? 0)
}

/** The addresses of a connection, which are read from the system when first needed, and cached. */
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

import type { Socket } from 'node:net'
import { hostAndPort } from '../../../ground/base/listen-hosts.ts'
import type { ConnectionEnds, Peer, ProxyHeader } from '../../../ground/exchange/peer.ts'
import { canonicalAddress } from './canonical-address.ts'

/** The peer of a socket. Caches its text, which is often needed. */
export class SocketPeer implements Peer {
  readonly address: string
  readonly port: number
  readonly proxyHeader: ProxyHeader | undefined
  #text: string | undefined

  constructor(address: string, port: number, proxyHeader?: ProxyHeader) {
    this.address = address
    this.port = port
    this.proxyHeader = proxyHeader
  }

  /** `address:port`, with brackets around IPv6. */
  get text(): string {
    const { address, port } = this
    this.#text ??= hostAndPort(address, port)
    return this.#text
  }
}

/** What is known about the ends of a connection that its socket does not tell. */
interface AnnouncedEnds {
  /** The client; undefined if the PROXY header names none. */
  readonly source: Peer | undefined
  /** The PROXY header of the load balancer that forwards the connection. */
  readonly header?: ProxyHeader
  /** Set for connections inside the process, whose sockets have no addresses. */
  readonly inner?: ConnectionEnds
}

const announced = new WeakMap<Socket, AnnouncedEnds>()

/** Sets the content of the PROXY header of a connection. */
export function announceSource(socket: Socket, source: Peer | undefined, header: ProxyHeader) {
  announced.set(socket, { source, header })
}

/** Sets the ends of a connection inside the process. */
export function announceEnds(socket: Socket, inner: ConnectionEnds): void {
  announced.set(socket, { source: inner.source, inner })
}

/** Copies the client of the socket `below` to `socket`. */
export function inheritSource(socket: Socket, below: Socket): void {
  const source = announced.get(below)
  if (source !== undefined) announced.set(socket, source)
}

/** The client of a connection: that of the PROXY header, otherwise the peer of the socket. */
function sourceOf(socket: Socket): Peer {
  return announced.get(socket)?.source ?? peerOf(socket)
}

/** The peer of the socket itself, which may be a load balancer. */
export function peerOf(socket: Socket): Peer {
  const { header, inner } = announced.get(socket) ?? {}
  if (inner !== undefined) return inner.rawSource
  const { remoteAddress, remotePort } = socket
  return new SocketPeer(canonicalAddress(remoteAddress ?? ''), remotePort ?? 0, header)
}

/** The ends of a connection, read from the system when first needed. */
export function endsOf(socket: Socket): ConnectionEnds {
  return {
    get source() {
      return sourceOf(socket)
    },
    get rawSource() {
      return peerOf(socket)
    },
    get local() {
      return localOf(socket)
    },
  }
}

function localOf(socket: Socket): Peer {
  const { inner } = announced.get(socket) ?? {}
  if (inner !== undefined) return inner.local
  const { localAddress, localPort } = socket
  return { address: canonicalAddress(localAddress ?? ''), port: localPort ?? 0 }
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
    this.#local ??= localOf(this.#socket)
    return this.#local
  }
}

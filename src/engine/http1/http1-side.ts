import type { Socket } from 'node:net'
import type { Peer } from '../../exchange/exchange.ts'
import { ConnectionAddresses } from '../sockets/connection-ends.ts'
import type { Transport } from '../sockets/transport.ts'
import type { TlsChoice } from '../tls/tls-choice.ts'

/** What an HTTP/1.1 connection is to the exchange that it serves, as far as its transport tells. */
export abstract class Http1Side {
  abstract readonly transport: Transport
  readonly port: number
  /** Undefined where the connection is plaintext. */
  readonly tls: TlsChoice | undefined
  readonly framesBodies = false
  #ends: ConnectionAddresses | undefined
  /** This request's 100 (Continue) has been sent, or none is to be. */
  hasContinued = false
  /** The response under way is the last one. */
  mustClose = false

  constructor(port: number, tls: TlsChoice | undefined) {
    this.port = port
    this.tls = tls
  }

  get #connectionEnds(): ConnectionAddresses {
    this.#ends ??= new ConnectionAddresses(this.transport.socket)
    return this.#ends
  }

  get source(): Peer {
    return this.#connectionEnds.source
  }

  get local(): Peer {
    return this.#connectionEnds.local
  }

  get scheme(): 'http' | 'https' {
    return this.tls === undefined ? 'http' : 'https'
  }

  get sink(): Transport {
    return this.transport
  }

  get socket(): Socket {
    return this.transport.socket
  }

  /** Large pieces are written as views, which the kernel reads until they have left. */
  get bufferHolder(): Socket | undefined {
    return this.transport.bufferHolder
  }

  get needsDrain(): boolean {
    return this.transport.needsDrain
  }

  sendInterim(head: string): void {
    this.transport.appendText(`${head}\r\n`)
    this.transport.flush()
  }

  startTunnel(head: string, protocol: string): Transport {
    this.transport.appendText(`${head}connection: upgrade\r\nupgrade: ${protocol}\r\n\r\n`)
    this.transport.flush()
    return this.transport
  }

  cut(isCloseDelimited: boolean): void {
    this.transport.flush()
    if (isCloseDelimited) this.transport.reset()
    else this.transport.destroy()
  }
}

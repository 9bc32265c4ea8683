/** Clients' connections between the port that accepted them and the protocol that they speak. */
import type { Socket } from 'node:net'
import type { EngineLimits } from '../limits/engine-limits.ts'
import type { Transport } from '../sockets/transport.ts'
import type { TlsChoice } from '../tls/tls-choice.ts'
import type { SecureSocket } from '../tls/tls-handshake.ts'

/** A client's connection that can carry requests. */
export interface AcceptedConnection {
  readonly limits: EngineLimits
  readonly port: number
  readonly socket: Socket
  /** Set if the socket is TLS. */
  readonly secure?: SecureSocket
  /** Bytes were read from the socket, and wait in it. */
  readonly wasRead?: boolean
}

/** A client connection as the engine keeps account of it. */
export interface OpenConnection {
  readonly port: number
  readonly tls: TlsChoice | undefined
  readonly transport: Transport
  /** The gateway is about to stop: clients should go elsewhere with what they begin. */
  announceEnd(): void
  /** Closes now if nothing is served, else after what is under way. */
  closeSoon(): void
  /** Drops the connection and whatever is served on it. */
  abort(): void
}

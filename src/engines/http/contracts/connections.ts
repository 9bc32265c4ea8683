/** Client connections between the port that accepted them and the protocol that they speak. */
import type { Socket } from 'node:net'
import type { EngineLimits } from '../limits/engine-limits.ts'
import type { ConnectionAddresses } from '../sockets/connection-ends.ts'
import type { Transport } from '../sockets/transport.ts'
import type { TlsChoice } from '../tls/tls-choice.ts'
import type { SecureSocket } from '../tls/tls-handshake.ts'

/** A client connection that can carry requests. */
export interface AcceptedConnection {
  readonly limits: EngineLimits
  readonly port: number
  readonly socket: Socket
  /** Set if the connection uses TLS. */
  readonly secure?: SecureSocket
  /** Whether bytes were read from the socket and wait in it. */
  readonly wasRead?: boolean
}

/** The client connection on which requests arrive. */
export interface ClientConnection {
  readonly port: number
  /** The TLS settings that the handshake selected; undefined for plaintext. */
  readonly tls: TlsChoice | undefined
  readonly transport: Transport
  readonly addresses: ConnectionAddresses
}

/** A client connection that the engine has to end. */
export interface OpenConnection extends Omit<ClientConnection, 'addresses'> {
  /** Called when the gateway is about to stop: asks the client to send further requests elsewhere. */
  announceEnd(): void
  /** Closes at once if no request is being served, otherwise after those that are. */
  closeSoon(): void
  /** Drops the connection and all requests that are being served on it. */
  abort(): void
}

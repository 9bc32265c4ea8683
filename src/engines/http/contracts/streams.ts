/**
 * The interface for streams that are forwarded without being read: TCP connections, TLS connections
 * that end at the gateway or pass through it, and sessions of datagrams.
 *
 *   engine:  connection made ----> onStream        connect ----> bytes are copied both ways
 *   plane:                         connect | refuse
 *   engine:  no connection to the backend ----> onStreamError ----> connect | refuse
 *   engine:  both sides are gone ----> onStreamDone (exactly once)
 */
import type { GatewayError } from '../../../ground/errors/index.ts'
import type { ConnectionEnds } from '../../../ground/exchange/peer.ts'
import type { ConnectOptions, UpstreamAddress } from '../sockets/upstream-address.ts'
import type { TlsChoice } from '../tls/tls-choice.ts'

/** `tls` includes TLS that is forwarded without being terminated. */
export type StreamProtocol = 'tcp' | 'tls' | 'udp'

/** One connection or one session of datagrams. */
export interface ServerStream extends ConnectionEnds {
  /** Port of the listener. */
  readonly port: number
  readonly protocol: StreamProtocol
  /** The TLS settings that the handshake selected; undefined if there was no handshake. */
  readonly tls: TlsChoice | undefined
  /** The server name that the client sent (SNI, RFC 6066 3), unchanged. */
  readonly serverName: string | undefined
  /** `performance.now()` when the connection was made, after the TLS handshake if there is one. */
  readonly startedAt: number
  /** Bytes from the client, and bytes to the client. The headers of datagrams do not count. */
  readonly receivedBytes: number
  readonly sentBytes: number
  /** The error that ended the stream early, if any. */
  readonly error: GatewayError | undefined
  /** State of the data plane for this stream. */
  state: unknown
  /** Connects to a backend. */
  connect(address: UpstreamAddress, options: ConnectOptions): void
  /** Ends the stream so that the client sees an error, if its protocol has one. */
  refuse(error: GatewayError): void
}

export interface StreamHandler {
  /** Called for each stream. Must lead, now or later, to exactly one connect or refuse. Must not throw. */
  onStream(stream: ServerStream): void
  /** Called if no connection to the address could be made. Must lead to another connect, or to refuse. */
  onStreamError(stream: ServerStream, error: GatewayError): void
  /** Called when the connection was made to another address of the name than the requested one. */
  onAlternateAddress(stream: ServerStream, address: UpstreamAddress): void
  /** Called before a datagram is forwarded. Returns whether a new session would go to the same backend. */
  isCurrent(stream: ServerStream): boolean
  /** Called once, when both sides are gone. */
  onStreamDone(stream: ServerStream): void
}

/** Counters of streams, read when metrics are scraped. */
export interface StreamCounters {
  /** Connections and sessions by protocol: all so far (`total`), and those that are open. */
  readonly total: Record<StreamProtocol, number>
  readonly open: Record<StreamProtocol, number>
  /** Bytes received from clients, and bytes sent to them. */
  readonly received: Record<StreamProtocol, number>
  readonly sent: Record<StreamProtocol, number>
  /** Datagrams that were not forwarded, by reason. */
  readonly droppedDatagrams: Record<DropReason, number>
}

/** `sessions`: too many sessions; `backlog`: the receiver is too slow. */
type DropReason = 'sessions' | 'backlog'

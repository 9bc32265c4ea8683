/**
 * The seam for what is forwarded without being read: TCP connections, TLS connections that end at
 * the gateway or pass through it, and sessions of datagrams.
 *
 *   engine:  connection made ----> onStream        connect ----> bytes are copied both ways
 *   plane:                         connect | refuse
 *   engine:  no connection to the backend ----> onStreamError ----> connect | refuse
 *   engine:  both sides are gone ----> onStreamDone (exactly once)
 */
import type { GatewayError } from '../../errors/index.ts'
import type { Peer } from '../../exchange/exchange.ts'
import type { ConnectOptions, UpstreamAddress } from '../sockets/upstream-address.ts'
import type { TlsChoice } from '../tls/tls-choice.ts'

/** `tls`: also where TLS passes through unread. */
export type StreamProtocol = 'tcp' | 'tls' | 'udp'

/** One connection or one session of datagrams. */
export interface ServerStream {
  /** Port of the listener. */
  readonly port: number
  readonly protocol: StreamProtocol
  /** What was chosen by the name of the handshake; `undefined` if there was none. */
  readonly tls: TlsChoice | undefined
  /** The name that the client asked for (RFC 6066 3), as it wrote it. */
  readonly serverName: string | undefined
  readonly source: Peer
  /** `performance.now()` of the connection, after the TLS handshake if there is one. */
  readonly startedAt: number
  /** Bytes from the client and to it; of datagrams without their headers. */
  readonly receivedBytes: number
  readonly sentBytes: number
  /** What ended it before its time, if anything. */
  readonly error: GatewayError | undefined
  /** Scratch of the data plane. */
  state: unknown
  /** Connects to a backend. */
  connect(address: UpstreamAddress, options: ConnectOptions): void
  /** Ends it so that the client sees an error, where its protocol has one. */
  refuse(error: GatewayError): void
}

export interface StreamHandler {
  /** Ends, now or later, in exactly one connect or refuse. Must not throw. */
  onStream(stream: ServerStream): void
  /** No connection could be made to the address: ends in one more connect, or in refuse. */
  onStreamError(stream: ServerStream, error: GatewayError): void
  /** The connection is made to another address of the name than the one that was asked for. */
  onAlternateAddress(stream: ServerStream, address: UpstreamAddress): void
  /** Asked before a datagram is forwarded: is the session still where it would be made anew? */
  isCurrent(stream: ServerStream): boolean
  /** Everything is over. */
  onStreamDone(stream: ServerStream): void
}

/** Counters of streams; read when metrics are scraped. */
export interface StreamCounters {
  /** Connections and sessions by protocol. */
  readonly total: Record<StreamProtocol, number>
  readonly open: Record<StreamProtocol, number>
  /** Bytes from clients and to them. */
  readonly received: Record<StreamProtocol, number>
  readonly sent: Record<StreamProtocol, number>
  /** Datagrams that were not forwarded. */
  readonly droppedDatagrams: Record<DropReason, number>
}

/** `sessions`: there is no room for another session; `backlog`: the other side takes no more now. */
type DropReason = 'sessions' | 'backlog'

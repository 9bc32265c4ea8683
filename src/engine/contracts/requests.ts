/**
 * The seam between the I/O engine (sockets, framing, pools, timers) and the data plane (routing,
 * policies, logging). The engine owns bytes and connections and knows no configuration; the data
 * plane decides and never touches a socket.
 *
 *   engine:  head read ----> onRequest        forward ----> upstream head ----> onResponse
 *   plane:                   respond | forward                                  relay | respond
 *   engine:  anything breaks before the response head is sent ----> onError ----> respond
 *   engine:  last byte sent, or the connection is gone ----> onDone (exactly once)
 */

import type { GatewayError } from '../../errors/index.ts'
import type {
  ChosenBackend,
  Exchange,
  FieldPair,
  Peer,
  RoutePlace,
} from '../../exchange/exchange.ts'
import type { AddressRace, ConnectOptions, UpstreamAddress } from '../sockets/upstream-address.ts'
import type { TlsChoice } from '../tls/tls-choice.ts'

export interface ForwardOptions extends ConnectOptions {
  /** Milliseconds for this attempt, whole response; 0 = none. */
  readonly attemptTimeoutMs: number
  /** Milliseconds for the whole exchange since the first forward, body included; 0 = none. */
  readonly requestTimeoutMs: number
}

/** Bytes from `start` up to `end`; they belong to the connection and are gone after the call. */
export type TunnelWatcher = (bytes: Buffer, start: number, end: number) => void

/** How the exchange ended, for the log. */
export type Ending = 'complete' | 'client-closed' | 'upstream-cut' | 'timeout'

/** A response of the gateway's own whose body comes bit by bit. */
export interface ResponseStream {
  /** The client reads slowly: what is written waits in memory until `onDrain`. */
  readonly isSlow: boolean
  /** The client has read what was written. */
  onDrain: (() => void) | undefined
  /** The bytes must stay as they are. Nothing happens once the exchange is over. */
  write(bytes: Buffer): void
  /** The response is complete. */
  end(): void
}

/**
 * One request on one connection. Objects are reused between requests of a connection: nothing may
 * keep one after onDone.
 */
export interface ServerExchange extends Exchange {
  /** Port of the listener that accepted the connection. */
  readonly port: number
  /** What was chosen at the handshake; `undefined` if the connection is plaintext. */
  readonly tls: TlsChoice | undefined
  /** Bytes of bodies, as sent on the client connection. */
  readonly requestBytes: number
  readonly responseBytes: number
  /** Status that was sent to the client; 0 before. */
  readonly sentStatus: number
  /** Whose answer the client got. */
  readonly answeredBy: 'gateway' | 'upstream' | 'nobody'
  readonly ending: Ending | undefined
  /** When it was over, as `startedAt`; 0 before. */
  readonly endedAt: number
  /** The error that the exchange met last, if any. */
  readonly error: GatewayError | undefined
  /** Set by the data plane, to an object it shares between requests; reset by the engine. */
  place: RoutePlace
  backend: ChosenBackend | undefined
  bufferLimit: number
  /** Who a trusted proxy says the client is; set by the data plane, reset by the engine. */
  forwardedFor: Peer | undefined
  /** Scratch of the data plane for this exchange; cleared by the engine between requests. */
  state: unknown
  /** The head as it stands in the WASM core's record right now; valid only inside onRequest, synchronously. */
  readonly headIsFresh: boolean
  /** Names, in lower case, of the fields that are still there as the client sent them. */
  receivedNames(): ReadonlySet<string>
  /**
   * Removes fields of the request as the client sent them, by their lower-case names, and returns
   * them. What was set since, by a policy or a filter, stays.
   */
  takeFields(isTaken: (name: string) => boolean): readonly FieldPair[]
  /** Another forward can still send the whole request. */
  readonly isReplayable: boolean
  /** Answers without an upstream; body framing, Date and HEAD rules are the engine's. */
  respond(
    status: number,
    headers: readonly (readonly [string, string])[],
    body: string | Uint8Array | undefined,
  ): void
  /**
   * The same for a body that comes bit by bit; `undefined` if the client has gone. Throws
   * `filter_failed` if a header is not valid.
   */
  respondStream(
    status: number,
    headers: readonly (readonly [string, string])[],
  ): ResponseStream | undefined
  /** Sends the request (with all edits made so far) to the address. */
  forward(address: UpstreamAddress, options: ForwardOptions): void
  /** Sends the upstream's response (with all edits made so far) to the client. */
  relay(): void
  /** Inside onResponse: the head stays readable until onDone. */
  keepResponseHead(): void
  /** Where the request ends in a tunnel: sees what the upstream sends, during the call alone. */
  watchTunnel(watcher: TunnelWatcher): void
  /** Sends a copy of head and body to another address and forgets the answer; before forward. */
  mirror(address: UpstreamAddress, race?: AddressRace): void
}

export interface RequestHandler {
  /** Ends, now or later, in exactly one respond or forward. Must not throw. */
  onRequest(exchange: ServerExchange): void
  /** Ends, now or later, in exactly one relay, respond or forward (a retry). Must not throw. */
  onResponse(exchange: ServerExchange): void
  /** Nothing has been sent to the client; ends in one respond (or one more forward: a retry). */
  onError(exchange: ServerExchange, error: GatewayError): void
  /**
   * The connection for a forward is made to another address of the name than the one that was
   * asked for. Decides nothing, and must not throw.
   */
  onAlternateAddress?(exchange: ServerExchange, address: UpstreamAddress): void
  /** The exchange is over; also called when it never reached onRequest's end. */
  onDone(exchange: ServerExchange): void
  /** A head that could not be read; the engine answers with the catalogue row and closes. */
  onBadHead(port: number, error: GatewayError, peer: Peer, scheme: 'http' | 'https'): void
}

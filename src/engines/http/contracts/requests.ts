/**
 * The interface between the I/O engine (sockets, framing, pools, timers) and the data plane (routing,
 * policies, logging). The engine owns bytes and connections and knows no configuration; the data
 * plane decides and never touches a socket.
 *
 *   engine:  head read ----> onRequest        forward ----> upstream head ----> onResponse
 *   plane:                   respond | forward                                  relay | respond
 *   engine:  anything breaks before the response head is sent ----> onError ----> respond
 *   engine:  last byte sent, or the connection is gone ----> onDone (exactly once)
 */

import type { WholeBody } from '../../../ground/base/buffers.ts'
import type { GatewayError } from '../../../ground/errors/index.ts'
import type {
  BodyWatcher,
  BufferedBody,
  ChosenBackend,
  Exchange,
  FieldPair,
  Peer,
  RoutePlace,
} from '../../../ground/exchange/exchange.ts'
import type { AddressRace, ConnectOptions, UpstreamAddress } from '../sockets/upstream-address.ts'
import type { TlsChoice } from '../tls/tls-choice.ts'

export interface ForwardOptions extends ConnectOptions {
  /** Milliseconds for this attempt, until the response is complete; 0 means no limit. */
  readonly attemptTimeoutMs: number
  /** Milliseconds for this attempt, until its response is relayed; no limit if omitted. */
  readonly responseTimeoutMs?: number
  /** Milliseconds without a byte of the response, until it is relayed; no limit if omitted. */
  readonly idleTimeoutMs?: number
  /** Milliseconds for the exchange since the first forward, including the body; 0 means no limit. */
  readonly requestTimeoutMs: number
  /** Set for a CONNECT: the address gets the bytes of the tunnel instead of the request. */
  readonly tunnel?: TunnelOptions | undefined
}

/** How the tunnel of a CONNECT is limited. */
export interface TunnelOptions {
  /** Milliseconds without bytes after which the tunnel is cut; 0 means no limit. */
  readonly idleTimeoutMs: number
  /** Milliseconds after which an open tunnel is cut; 0 means no limit. */
  readonly maxDurationMs: number
  /** Whether the gateway adds no TLS to the destination, because the client adds it inside the tunnel if needed. */
  readonly isPlain?: boolean
  /** If set, the client must begin with TLS for this name. Its first bytes are buffered until that is checked. */
  readonly serverName?: string | undefined
  /** With `serverName`: milliseconds from the open tunnel to the end of this check; no limit if 0 or omitted. */
  readonly helloTimeoutMs?: number
}

/** Called with bytes [start, end) of a connection's buffer, which is overwritten after the call. */
export type TunnelWatcher = (bytes: Buffer, start: number, end: number) => void

/** How the exchange ended, for the log. */
export type Ending = 'complete' | 'client-closed' | 'upstream-cut' | 'timeout'

/** The body of a response of the gateway's own, written piece by piece. */
export interface ResponseStream {
  /** Whether the client reads slowly, so that written bytes wait in memory until `onDrain`. */
  readonly isSlow: boolean
  /** Called when the client has read everything that was written. */
  onDrain: (() => void) | undefined
  /** Writes bytes, which must not be changed afterwards. Does nothing once the exchange is over. */
  write(bytes: Buffer): void
  /** Ends the response. */
  end(): void
}

/** The fields of a head as the client sent them. They must not be changed. */
export interface ReceivedFields {
  readonly bytes: Buffer
  /** Offset of the head in `bytes`. */
  readonly base: number
  /** Five numbers for each field, of which the first four are offsets in the head: of name and value. */
  readonly spans: Int32Array
  readonly count: number
}

/**
 * One request on one connection. Objects are reused between requests of a connection: nothing may
 * keep one after onDone.
 */
export interface ServerExchange extends Exchange {
  /** Port of the listener that accepted the connection. */
  readonly port: number
  /** The client that has connected, even if a header names another one. */
  readonly connectedSource: Peer
  /** The TLS settings that the handshake selected; undefined for plaintext. */
  readonly tls: TlsChoice | undefined
  /** Bytes of the request body and of the response body, as sent on the client connection. */
  readonly requestBytes: number
  readonly responseBytes: number
  /** Status that was sent to the client; 0 before the response. */
  readonly sentStatus: number
  /** The side that responded to the client. */
  readonly respondedBy: 'gateway' | 'upstream' | 'none'
  readonly ending: Ending | undefined
  /** Time of the end on the clock of `startedAt`; 0 before the end. */
  readonly endedAt: number
  /** The last error of the exchange, if any. */
  readonly error: GatewayError | undefined
  /** Set by the data plane to an object that requests share; reset by the engine. */
  place: RoutePlace
  backend: ChosenBackend | undefined
  bufferLimit: number
  /** The client's address from a trusted proxy; set by the data plane, reset by the engine. */
  forwardedFor: Peer | undefined
  /** State of the data plane for this exchange; cleared by the engine between requests. */
  state: unknown
  /** Whether the core's head record still has this head, which is so only during onRequest. */
  readonly headIsFresh: boolean
  /** The fields of the request, until onDone has returned. */
  readonly receivedFields: ReceivedFields
  /** Lower-case names of the fields that remain as the client sent them, if `isWanted` returns true. */
  receivedNames(isWanted: (name: string) => boolean): readonly string[]
  /**
   * Removes fields that the client sent, by their lower-case names, and returns them. Fields that a
   * policy or a filter has set since stay.
   */
  takeFields(isTaken: (name: string) => boolean): readonly FieldPair[]
  /** Whether another forward can still send the whole request. */
  readonly isReplayable: boolean
  /** Responds without an upstream. The engine adds framing and Date, and follows the rules for HEAD. */
  respond(
    status: number,
    headers: readonly (readonly [string, string])[],
    body: WholeBody | undefined,
  ): void
  /**
   * Like `respond`, for a body that is written piece by piece. Returns undefined if the client is
   * gone. Throws `filter_failed` if a header is not valid.
   */
  respondStream(
    status: number,
    headers: readonly (readonly [string, string])[],
  ): ResponseStream | undefined
  /** Sends the request (with all edits made so far) to the address. */
  forward(address: UpstreamAddress, options: ForwardOptions): void
  /** Sends the upstream's response (with all edits made so far) to the client. */
  relay(): void
  /**
   * Reads the body of the upstream's response up to `maxBytes` into memory, and then calls `onWholeResponse`, or
   * `onError` if the body breaks off. Must be called inside onResponse. With a watcher, reads only the beginning
   * of the body, until the watcher has seen enough.
   */
  bufferResponse(maxBytes: number, watcher?: BodyWatcher): void
  /** Calls `watcher` with the bytes that the upstream sends if the request opens a tunnel. */
  watchTunnel(watcher: TunnelWatcher): void
  /** Also sends head and body to another address, whose response is ignored. Call it before `forward`. */
  mirror(address: UpstreamAddress, race?: AddressRace): void
}

export interface RequestHandler {
  /** Called for a request. Must end, now or later, in exactly one respond or forward. Must not throw. */
  onRequest(exchange: ServerExchange): void
  /**
   * Called for a response. Must end in one relay, respond or forward (a retry), which `onWholeResponse` may do
   * after `bufferResponse`. Must not throw.
   */
  onResponse(exchange: ServerExchange): void
  /** Called when a body that is buffered has arrived. Must end as onResponse does. */
  onWholeResponse?(exchange: ServerExchange, body: BufferedBody): void
  /** Called before anything was sent to the client. Must end in one respond or forward (a retry). */
  onError(exchange: ServerExchange, error: GatewayError): void
  /**
   * Called when the connection for a forward was made to another address of the name than the
   * requested one. Must not throw.
   */
  onAlternateAddress?(exchange: ServerExchange, address: UpstreamAddress): void
  /** Called when the exchange is over, even if onRequest had not led to a response. */
  onDone(exchange: ServerExchange): void
  /** Called for a head that could not be read; the engine responds with the error's status and closes. */
  onBadHead(port: number, error: GatewayError, peer: Peer, scheme: 'http' | 'https'): void
}

/**
 * What a policy sees of one request and its response. The data plane implements these types over raw sockets
 * and the WASM head reader, so this file must not refer to node:http or sockets. Heads are ranges of bytes;
 * strings are created on demand.
 */

import type { WholeBody } from '../base/buffers.ts'
import type { GatewayError } from '../errors/index.ts'
import type { ConnectionSettings, TlsSettings } from './connection.ts'
import type { Extensions } from './extensions.ts'
import type { Learned } from './learned.ts'
import type { ConnectionEnds } from './peer.ts'
import type { ReturnStream, SideStream } from './side-stream.ts'

export type { Peer } from './peer.ts'

export type FieldPair = readonly [name: string, value: string]

/** Header fields in wire order. Names are case-insensitive; values are Latin-1 text. */
export interface HeaderFields {
  /** Returns the first value; undefined if there is none. */
  get(name: string): string | undefined
  /** Returns every value in order; empty if there is none. */
  getAll(name: string): string[]
  /** Returns a single value as a string, several values as a list, or undefined if there is none. */
  lines(name: string): string | readonly string[] | undefined
  /**
   * Returns the bytes of a value without making a string; undefined if there are several values, or if it was not
   * received like this. They are valid until the current turn of the event loop ends.
   */
  bytesOf?(name: string): Buffer | undefined
  has(name: string): boolean
  /** Replaces all values by this one. */
  set(name: string, value: string): void
  /** Appends a value. */
  add(name: string, value: string): void
  remove(name: string): void
  /** Returns all fields, with the changes made so far. */
  entries(): Iterable<readonly [name: string, value: string]>
}

export interface RequestHead {
  /** Request method, case-sensitive. */
  method: string
  /** Scheme of the connection, unless a policy changed it. It decides the port of a dynamic destination. */
  scheme: 'http' | 'https'
  /** The host, with the port if the client sent one. It replaces the Host header, which `headers` does not have. */
  authority: string
  /** Path as sent: not decoded, without the query. */
  path: string
  /** Query without `?`; undefined if there is none. */
  query: string | undefined
  /** HTTP version: `1.0`, `1.1` or `2`. */
  readonly version: string
  /** The protocol that the client wants to switch to, if the gateway can forward that. */
  readonly upgrade?: string | undefined
  readonly headers: HeaderFields
}

export function pathAndQuery({ path, query }: Pick<RequestHead, 'path' | 'query'>): string {
  return query === undefined ? path : `${path}?${query}`
}

export interface ResponseHead {
  /** Status code, 100 to 599. */
  status: number
  readonly headers: HeaderFields
}

export type BufferedBody =
  | { readonly complete: true; readonly bytes: Uint8Array }
  | { readonly complete: false; readonly prefix: Uint8Array }

/** A range of bytes; empty if nothing is omitted. */
export interface OmittedBytes {
  readonly cutStart: number
  readonly cutEnd: number
}

/** Bytes [start, end) of `bytes`. */
export interface ByteSpan {
  readonly bytes: Buffer
  readonly start: number
  readonly end: number
}

/** A step in the stream of a body. It receives the bytes in order and may hold them back until `end`. */
export interface BodyTransform {
  /**
   * Asked before `push`: returns which of the bytes [start, end) to omit, if all others can be sent
   * unchanged. If it returns undefined, nothing has changed, and `push` gets a copy of the bytes.
   */
  relay?(bytes: Buffer, start: number, end: number): OmittedBytes | undefined
  /**
   * Asked after `relay`: returns what to send in place of the bytes [start, end), which is valid until the
   * next call. If it returns undefined, nothing has changed.
   */
  rewrite?(bytes: Buffer, start: number, end: number): ByteSpan | undefined
  push(chunk: Uint8Array, emit: (bytes: Uint8Array) => void): void
  end(emit: (bytes: Uint8Array) => void): void
  /**
   * Called if the source ended early. A transform may emit an end here that readers recognise as a failure;
   * otherwise the connection is aborted.
   */
  fail?(emit: (bytes: Uint8Array) => void): void
  /** Length of the transformed body, if it is known before the body has arrived. */
  readonly length?: number | undefined
  /** Whether the body is complete, so that the rest of the source is not needed. */
  readonly isOver?: boolean
}

/** Decides how much of the beginning of a body is read. */
export interface BodyWatcher {
  /** Called with bytes that have arrived, which are overwritten after the call. Returns true if they are enough. */
  watch(bytes: Buffer, start: number, end: number): boolean
}

/** A message body as a stream with back-pressure. */
export interface Body {
  /** Content-Length, if known. */
  readonly length: number | undefined
  /** Reads up to `maxBytes` into memory. The body can still be forwarded afterwards. */
  buffer(maxBytes: number): Promise<BufferedBody>
  /**
   * Does the same, and returns a promise only if not all of the body has arrived. With a watcher, reads only the
   * beginning, until the watcher has seen enough.
   */
  read(maxBytes: number, watcher?: BodyWatcher): BufferedBody | Promise<BufferedBody>
  /**
   * Replaces the body by these bytes and adjusts Content-Length. Transforms apply to them unless `isOther`.
   */
  replace(bytes: Uint8Array, isOther?: boolean): void
  /** Adds a transform, unless it was added before; framing becomes chunked if the length is no longer known. */
  through(transform: BodyTransform): void
  /**
   * The part of the body that is in memory, because of `buffer`, `replace` or a `record` that was called
   * before the body ended. Undefined if none of them was called in time.
   */
  readonly known: BufferedBody | undefined
  /** Trailer field lines, once the body is over; empty if there are none. */
  readonly trailers: string
  /** Copies up to `maxBytes` of the bytes that pass from now on, without delaying them. */
  record(maxBytes: number): void
  /**
   * Sends the body to a side stream from now on, and forwards what is written to the return stream in its
   * place. Bodies of the gateway's own responses cannot be diverted.
   */
  divert?(stream: SideStream): ReturnStream
}

/** A client certificate that was verified against the listener's CAs. */
export interface PeerCertificate {
  /** The certificate in PEM. */
  readonly pem: string
  /** Distinguished name of the subject, such as `CN=a, O=b`. */
  readonly subject: string
  /** Distinguished name of the issuer. */
  readonly issuer: string
  /** Common name of the subject. */
  readonly subjectCn: string | undefined
  /** Subject alternative names without their types: host names, addresses, URIs, mail addresses. */
  readonly subjectAltNames: readonly string[]
  /** The first subject alternative name that is a SPIFFE id. */
  readonly spiffeId: string | undefined
}

/** The backend that was chosen for a request. */
export interface ChosenBackend {
  /**
   * Name of the backend: `namespace/name` of a GatewayBackend, `service/namespace/name:port` of a Service, or
   * `inferencepool/namespace/name` of an InferencePool.
   */
  readonly name: string
  /** Its field in GatewayBackend, `service` (also for an InferencePool), or `unknown`. */
  readonly type: string
  /** Application protocol of its kind, such as `http`. */
  readonly protocol: string
}

/** Names of the configuration objects that the request has matched so far. */
export interface RoutePlace {
  readonly gateway: string
  readonly listener: string
  readonly route?: string
  readonly rule?: string
}

export interface Exchange extends ConnectionEnds {
  readonly request: RequestHead
  readonly requestBody: Body
  /** Set once there is a response, from the upstream or from the gateway. */
  readonly response: ResponseHead | undefined
  readonly responseBody: Body | undefined
  /** Undefined if the client presented no certificate, or one that the listener does not trust. */
  readonly peerCertificate: PeerCertificate | undefined
  readonly place: RoutePlace
  /** Undefined until a backend is chosen. */
  readonly backend: ChosenBackend | undefined
  /** Maximum number of bytes of a body that are read into memory for a policy. */
  readonly bufferLimit: number
  /** The value of `performance.now()` when the request head was complete. */
  readonly startedAt: number
  /** Whether the response was sent or the connection is gone; only the log and spans still read it. */
  readonly isOver: boolean
  /** Values that policies have learned about the request: `jwt`, `apiKey`, `extauthz` … */
  readonly learned: Learned
  /** Values that policies pass to the data plane, such as `forwardingExtensions`. Expressions cannot read them. */
  readonly extensions: Extensions
}

/** The decision of a policy in the request phase: continue, or respond. */
export type Verdict = { readonly kind: 'next' } | RespondVerdict

export interface RespondVerdict {
  readonly kind: 'respond'
  readonly status: number
  readonly headers?: readonly (readonly [string, string])[]
  readonly body?: WholeBody
  /** The `reason` in the access log and in metrics. */
  readonly reason: string
  /**
   * Whether the gateway itself refuses the request, with a text as the body. gRPC clients get it as a gRPC
   * status, and the access log has the text as its error. The text never contains a credential.
   */
  readonly refusal?: true
  /** What decided, such as the rule that matched. It is recorded, and never sent to the client. */
  readonly detail?: string
  /** Set if a rate limit refuses. */
  readonly limit?: SpentLimit
  /** Set if the user must allow something on a page first. */
  readonly consent?: { readonly url: string; readonly message: string }
}

/** A rate limit that refuses a request, for clients that get errors in a format with more than a text. */
export interface SpentLimit {
  /** Which limit it is, and when the next request is allowed. */
  readonly message: string
  /** Milliseconds until the next request is allowed; infinite if that never happens. */
  readonly waitMs: number
}

export const next: Verdict = { kind: 'next' }

/** Maximum length of a text of the configuration within a detail. */
const maxQuoted = 200

/** Shortens a text of the configuration, such as an expression, for a detail. */
export function quoteInDetail(text: string): string {
  return text.length <= maxQuoted ? text : `${text.slice(0, maxQuoted)}…`
}

/** Creates the response with which the gateway itself refuses a request. */
export function refuse(
  status: number,
  reason: string,
  body: string,
  detail?: string,
): RespondVerdict {
  return { kind: 'respond', status, body, reason, refusal: true, ...(detail && { detail }) }
}

/** Supplies values of secrets by the digests that compiled policies contain. */
export interface SecretValues {
  /** Returns the value. Throws if it has not arrived; until it does, the policy fails closed. */
  value(digest: string): Uint8Array
}

/** Makes calls to other services. It is injected, so that policies contain no client code. */
export interface Callouts {
  /** Sends an HTTP request; rejects with a GatewayError. */
  http(call: HttpCallout): Promise<HttpCalloutResponse>
  /** Makes a unary gRPC call. Resolves to the response message; rejects with a GatewayError. */
  grpc(call: GrpcCallout): Promise<Uint8Array>
  /** Starts a gRPC call with messages in both directions. Failures are passed to `listener.onEnd`. */
  stream(call: GrpcStreamCallout): GrpcStream
}

export interface GrpcCallout {
  readonly target: CalloutTarget
  /** Path of the method: `/package.Service/Method`. */
  readonly path: string
  /** The encoded request message. */
  readonly message: Uint8Array
  /** The exchange that the call is made for; its trace gets a span. */
  readonly exchange?: Exchange
  readonly subtype?: CalloutSubtype
  /** Timeout of the call. A timeout in a policy of the backend takes precedence. */
  readonly timeoutMs: number
  /** Whether the call must not be sent again on another connection if the server may have processed it. */
  readonly isOnce?: boolean
}

/** The purpose of a call, as metrics and spans name it. */
export type CalloutSubtype =
  | 'ExtAuthz'
  | 'ExtProc'
  | 'EndpointPicker'
  | 'RateLimit'
  | 'Guardrail'
  | 'Http'

/** A backend that a policy refers to. */
export type CalloutTarget =
  | {
      readonly type: 'service'
      readonly namespace: string
      readonly name: string
      readonly port: number
    }
  | { readonly type: 'backend'; readonly namespace: string; readonly name: string }

/** A server that is not a backend. Connections to addresses that clients must not reach are refused. */
export interface HostTarget {
  readonly type: 'host'
  /** A host name, an IPv4 address, or an IPv6 address in brackets. */
  readonly host: string
  readonly port: number
  /** Whether to use TLS, with the certificate authorities that the machine trusts. */
  readonly isSecure: boolean
}

/** A server that is not a backend, with its own connection settings. Every address is allowed. */
export interface ServerTarget {
  readonly type: 'server'
  readonly host: string
  readonly port: number
  /** Connection settings; the same object for the same configuration. */
  readonly settings: ConnectionSettings
}

export interface GrpcStreamCallout {
  readonly target: CalloutTarget
  /** Path of the method: `/package.Service/Method`. */
  readonly path: string
  /** The exchange that the call is made for. */
  readonly exchange: Exchange
  readonly subtype?: CalloutSubtype
  /** Maximum wait for an expected response. A timeout in a policy of the backend takes precedence. */
  readonly timeoutMs: number
  /** TLS settings if no policy of the backend sets them; plaintext if omitted or if it returns undefined. */
  readonly defaultTls?: () => TlsSettings | undefined
  readonly listener: GrpcStreamListener
}

export interface GrpcStreamListener {
  /** Called for each message, whose bytes the listener may keep. */
  onMessage(message: Uint8Array): void
  /** Called after `send` returned false, when more messages can be sent. */
  onDrain(): void
  /** Called once, when the call has ended, with an error if it failed. Nothing is called afterwards. */
  onEnd(error: GatewayError | undefined): void
}

export interface GrpcStream {
  /** Sends a message. Returns false if the server is slow: then send no more before `onDrain`. */
  send(message: Uint8Array): boolean
  /** Sets whether a response is expected. While one is, the call fails if no message comes for `timeoutMs`. */
  expect(isExpected: boolean): void
  /** Stops messages from the server until `resume`. */
  pause(): void
  resume(): void
  /** Ends the gateway's side of the call after the last message. The listener is not called any more. */
  end(): void
  /** Resets the call, which the server sees as cancelled. The listener is not called any more. */
  close(): void
}

/** A request over HTTP/1.1. */
export interface HttpCallout {
  readonly target: CalloutTarget | HostTarget | ServerTarget
  readonly method: string
  /** Path and query. */
  readonly path: string
  /** Header fields. If Host is not among them, it is that of the backend. */
  readonly headers: readonly (readonly [string, string])[]
  readonly body?: Uint8Array
  /** Timeout until the response is complete. A timeout in a policy of the backend takes precedence. */
  readonly timeoutMs: number
  /** Maximum size of the response body; a larger one is an error. */
  readonly maxResponseBytes: number
  /** The exchange that the call is made for; its trace gets a span. */
  readonly exchange?: Exchange
  readonly subtype?: CalloutSubtype
}

export interface HttpCalloutResponse {
  readonly status: number
  readonly headers: readonly (readonly [string, string])[]
  readonly body: Uint8Array
}

/**
 * What a policy sees of one request and its response. Types only: the data plane implements them
 * over raw sockets and the WASM head reader, so nothing here may name node:http or a socket.
 * Heads are byte spans underneath; a string is made when somebody asks for it.
 */

import type { GatewayError } from '../errors/index.ts'
import type { ConnectionSettings } from './connection.ts'
import type { Learned } from './learned.ts'

export type FieldPair = readonly [name: string, value: string]

/** Header fields in wire order. Names are case-insensitive; values are Latin-1 text. */
export interface HeaderFields {
  /** First value, or undefined. */
  get(name: string): string | undefined
  /** Every value, in order; empty where absent. */
  getAll(name: string): string[]
  /** Every value: one alone without a list, several as a list; undefined where absent. */
  lines(name: string): string | readonly string[] | undefined
  has(name: string): boolean
  /** Replaces every value by one. */
  set(name: string, value: string): void
  /** Appends a value beside those that are there. */
  add(name: string, value: string): void
  remove(name: string): void
  /** All fields as they would be sent now. */
  entries(): Iterable<readonly [name: string, value: string]>
}

export interface RequestHead {
  /** Case-sensitive, as sent. */
  method: string
  /** Of the connection at first; what it is changed to decides the port of a dynamic destination. */
  scheme: 'http' | 'https'
  /** Host with the port where the client gave one; replaces the Host header. */
  authority: string
  /** Path as sent: not decoded, without the query. */
  path: string
  /** Query without `?`; undefined where there is none. */
  query: string | undefined
  /** `1.0`, `1.1` or `2`. */
  readonly version: string
  /** The protocol that the client wants to switch to, where that can be passed on. */
  readonly upgrade?: string | undefined
  readonly headers: HeaderFields
}

export interface ResponseHead {
  /** 100..599. */
  status: number
  readonly headers: HeaderFields
}

export type BufferedBody =
  | { readonly complete: true; readonly bytes: Uint8Array }
  | { readonly complete: false; readonly prefix: Uint8Array }

/** A step in the stream of a body; it is called in order and may hold bytes back until `end`. */
export interface BodyTransform {
  push(chunk: Uint8Array, emit: (bytes: Uint8Array) => void): void
  end(emit: (bytes: Uint8Array) => void): void
  /**
   * The source has broken off in the middle. A transform that can still bring the body to an end which
   * its reader takes for a failure does so here; without it the connection is broken instead.
   */
  fail?(emit: (bytes: Uint8Array) => void): void
  /** Nothing more comes out: the body ends here, and the rest of the source is not wanted. */
  readonly isOver?: boolean
}

/** A message body as a stream with back-pressure. */
export interface Body {
  /** Content-Length where it is known. */
  readonly length: number | undefined
  /** Reads up to `maxBytes` into memory; the stream can still be sent on afterwards. */
  buffer(maxBytes: number): Promise<BufferedBody>
  /** Sends these bytes instead; Content-Length follows. */
  replace(bytes: Uint8Array): void
  /** Adds a transform; framing becomes chunked where the length is no longer known. */
  through(transform: BodyTransform): void
  /**
   * What is in memory of it: what was buffered, what it was replaced by, or what `record` has kept of
   * a body that is over. Undefined where nobody asked in time.
   */
  readonly known: BufferedBody | undefined
  /** Field lines after the body, once it is over; empty without any. */
  readonly trailers: string
  /** Keeps up to `maxBytes` of what passes from now on, and holds nothing up. */
  record(maxBytes: number): void
  /**
   * Sends the body elsewhere from now on; what is written to the outlet is sent on in its place. Only
   * bodies that come over a connection can do so: an answer of the gateway cannot.
   */
  detour?(detour: BodyDetour): BodyOutlet
}

/** Where a body goes that somebody else is to see and may change. Never called after `end`. */
export interface BodyDetour {
  /** A piece that is the detour's own; false: no more before `resume` of the outlet. */
  push(bytes: Uint8Array): boolean
  /** The last piece, perhaps empty; nothing follows but these field lines. */
  end(bytes: Uint8Array, trailers: string): void
  /** What was written to the outlet has left: there is room for more. */
  drained(): void
}

/** The way back of a body. */
export interface BodyOutlet {
  /** Bytes that nobody changes any more; false: nobody takes them just now, and they are held. */
  write(bytes: Uint8Array): boolean
  /** Nothing follows but these field lines; none where absent. */
  end(trailers?: string): void
  /** The detour takes more of the body. */
  resume(): void
  /** The rest does not come: the exchange meets this error. */
  abort(error: GatewayError): void
}

/** The peer of the connection. */
export interface Peer {
  readonly address: string
  readonly port: number
}

/** What the certificate of a client says that was verified against the listener's CAs. */
export interface PeerCertificate {
  /** In PEM. */
  readonly pem: string
  /** Distinguished names, such as `CN=a, O=b`. */
  readonly subject: string
  readonly issuer: string
  /** Common name of the subject. */
  readonly subjectCn: string | undefined
  /** Values without their types: host names, addresses, URIs, mail addresses. */
  readonly subjectAltNames: readonly string[]
  /** The first SAN that is a SPIFFE id. */
  readonly spiffeId: string | undefined
}

/** The backend that was chosen. */
export interface ChosenBackend {
  /**
   * `namespace/name` of a GatewayBackend, `service/namespace/name:port` of a Service,
   * `inferencepool/namespace/name` of an InferencePool.
   */
  readonly name: string
  /** An InferencePool is a service. */
  readonly type: 'ai' | 'mcp' | 'static' | 'dynamic' | 'service' | 'unknown'
  readonly protocol: 'http' | 'tcp' | 'a2a' | 'mcp' | 'llm'
}

/** Where the request landed; filled while it travels. */
export interface RoutePlace {
  readonly gateway: string
  readonly listener: string
  readonly route?: string
  readonly rule?: string
}

export interface Exchange {
  readonly request: RequestHead
  readonly requestBody: Body
  /** Set once a response exists, from the upstream or from the gateway. */
  readonly response: ResponseHead | undefined
  readonly responseBody: Body | undefined
  readonly source: Peer
  /** The other end of the connection, whatever proxies say of the client. */
  readonly rawSource: Peer
  readonly local: Peer
  /** Undefined where the client showed none, or none that the listener trusts. */
  readonly peerCertificate: PeerCertificate | undefined
  readonly place: RoutePlace
  /** Undefined until one is chosen. */
  readonly backend: ChosenBackend | undefined
  /** Most bytes of a body that are read into memory for a policy. */
  readonly bufferLimit: number
  /** `performance.now()` when the head was complete. */
  readonly startedAt: number
  /** The response has been sent, or the connection is gone: only log and spans still look. */
  readonly isOver: boolean
  /** What policies have learned of the request: `jwt`, `apiKey`, `extauthz` … */
  readonly learned: Learned
  /** What policies tell the data plane, such as `forwardingFacts`; expressions do not see it. */
  readonly facts: Map<string, unknown>
}

/** What a request-phase step decides. */
export type Verdict = { readonly kind: 'next' } | RespondVerdict

export interface RespondVerdict {
  readonly kind: 'respond'
  readonly status: number
  readonly headers?: readonly (readonly [string, string])[]
  readonly body?: string | Uint8Array
  /** `reason` of access log and metrics. */
  readonly reason: string
  /**
   * A refusal in the gateway's own name, with a text for its body: gRPC clients are told of it in
   * their way, and the access log has the text as its error. It names no credential.
   */
  readonly refusal?: true
}

export const next: Verdict = { kind: 'next' }

/** Values of secrets, by the digests that compiled policies name. */
export interface SecretValues {
  /** Throws where the value has not arrived; its policy then is closed until it does. */
  value(digest: string): Uint8Array
}

/** Calls that a policy makes to other services; injected so that policies own no client. */
export interface Callouts {
  /** HTTP request to a resolved backend; rejects with a GatewayError. */
  http(call: HttpCallout): Promise<HttpCalloutAnswer>
  /** Unary gRPC call; gives the message of the answer, and rejects with a GatewayError. */
  grpc(call: GrpcCallout): Promise<Uint8Array>
  /** A gRPC call whose messages go both ways; what goes wrong is told to the listener. */
  stream(call: GrpcStreamCallout): GrpcStream
}

export interface GrpcCallout {
  readonly target: CalloutTarget
  /** `/package.Service/Method`. */
  readonly path: string
  /** The request message, encoded. */
  readonly message: Uint8Array
  /** The exchange that the call is made for; its trace gets a span. */
  readonly exchange?: Exchange
  readonly subtype?: CalloutSubtype
  /** Unless a policy of the backend says otherwise. */
  readonly timeoutMs: number
}

/** Whose calls they are, as metrics and spans name them. */
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

/** A server that no backend stands for. It may not be one that clients must not be led to. */
export interface HostTarget {
  readonly type: 'host'
  /** A name or an address; IPv6 in brackets. */
  readonly host: string
  readonly port: number
  /** By TLS, trusting whom the machine trusts. */
  readonly isSecure: boolean
}

/** A server of a vendor that no backend stands for, with what is settled for connections to it alone. */
export interface VendorTarget {
  readonly type: 'vendor'
  readonly host: string
  readonly port: number
  /** The same object for the same configuration. */
  readonly settings: ConnectionSettings
}

export interface GrpcStreamCallout {
  readonly target: CalloutTarget
  /** `/package.Service/Method`. */
  readonly path: string
  /** The exchange that the call is made for. */
  readonly exchange: Exchange
  readonly subtype?: CalloutSubtype
  /** Longest silence while an answer is owed, unless a policy of the backend says otherwise. */
  readonly timeoutMs: number
  /** By TLS that believes whoever answers, unless a policy or the port of the Service says otherwise. */
  readonly isPicker?: true
  readonly listener: GrpcStreamListener
}

export interface GrpcStreamListener {
  /** One message, whose bytes are the listener's own. */
  onMessage(message: Uint8Array): void
  /** There is room for more messages. */
  onDrain(): void
  /** The server has ended the call; the error tells where it did so badly. Nothing follows. */
  onEnd(error: GatewayError | undefined): void
}

export interface GrpcStream {
  /** False: the server is slow, send no more before `onDrain`. */
  send(message: Uint8Array): boolean
  /** Is an answer owed? Then silence fails the call after a while. */
  expect(isOwed: boolean): void
  /** No more messages are wanted for now, or again. */
  pause(): void
  resume(): void
  /** Gives the call up, or says that nothing more is sent where it is over; nothing is told any more. */
  close(): void
}

/** A request of HTTP/1.1, written once and answered once. */
export interface HttpCallout {
  readonly target: CalloutTarget | HostTarget | VendorTarget
  readonly method: string
  /** Path and query. */
  readonly path: string
  /** Host is that of the backend unless it is among them. */
  readonly headers: readonly (readonly [string, string])[]
  readonly body?: Uint8Array
  /** For the whole answer, unless a policy of the backend says otherwise. */
  readonly timeoutMs: number
  /** A larger body is an error. */
  readonly maxResponseBytes: number
  /** The exchange that the call is made for; its trace gets a span. */
  readonly exchange?: Exchange
  readonly subtype?: CalloutSubtype
}

export interface HttpCalloutAnswer {
  readonly status: number
  readonly headers: readonly (readonly [string, string])[]
  readonly body: Uint8Array
}

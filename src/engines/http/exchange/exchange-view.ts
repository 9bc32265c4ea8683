import type { Socket } from 'node:net'
import { GatewayError } from '../../../ground/errors/index.ts'
import type {
  BodyWatcher,
  BufferedBody,
  ChosenBackend,
  FieldPair,
  Peer,
  PeerCertificate,
  RoutePlace,
} from '../../../ground/exchange/exchange.ts'
import { Extensions } from '../../../ground/exchange/extensions.ts'
import { Learned } from '../../../ground/exchange/learned.ts'
import type { BodyRead } from '../bytes/body-copy.ts'
import type { BodySource } from '../bytes/body-sink.ts'
import { Tunnel } from '../bytes/tunnel.ts'
import type { DownstreamStream } from '../contracts/downstream.ts'
import type { EngineParts } from '../contracts/engine-parts.ts'
import type { Ending, ReceivedFields, TunnelOptions, TunnelWatcher } from '../contracts/requests.ts'
import type { UpstreamStream } from '../contracts/upstream.ts'
import {
  admitsContent,
  type Framing,
  frameRequest,
  frameResponse,
  statusForClient,
  withoutContent,
} from '../message/framing.ts'
import type { FramingFields } from '../message/head-output.ts'
import { RequestHeadView } from '../message/request-head.ts'
import { ResponseHeadView } from '../message/response-head.ts'
import { peerOf } from '../sockets/connection-ends.ts'
import type { AddressRace, UpstreamAddress } from '../sockets/upstream-address.ts'
import { certificateOf } from '../tls/client-certificate.ts'
import type { TlsChoice } from '../tls/tls-choice.ts'
import { type MirrorTarget, startMirror } from '../upstream/mirror.ts'
import { ExchangeBody, type SideStreamOwner } from './exchange-body.ts'
import type { OwnStream } from './own-response.ts'
import { ServerNameCheck } from './server-name-check.ts'

const noPlace: RoutePlace = { gateway: '', listener: '' }
const nothing = new Uint8Array()
const unknownPeer: Peer = { address: '', port: 0 }

const idempotentMethods = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE'])

/** Body buffer limit in bytes (2 MiB), unless the Gateway sets another one. */
const defaultBufferLimit = 2_097_152

/** The state of an exchange that the data plane reads; `HttpExchange` adds the behaviour. */
export abstract class ExchangeView implements SideStreamOwner {
  readonly request = new RequestHeadView()
  /** The bodies as they arrive; side streams may replace them. */
  readonly requestSource: ExchangeBody
  readonly responseSource: ExchangeBody
  readonly responseHead = new ResponseHeadView()
  readonly learned = new Learned()
  readonly extensions = new Extensions()
  /**
   * Incremented for each request. Code that calls out of the engine compares it afterwards: the call
   * may end the exchange, and the object may serve the next request before the call returns.
   */
  generation = 0
  place: RoutePlace = noPlace
  backend: ChosenBackend | undefined
  bufferLimit = defaultBufferLimit
  state: unknown = undefined
  error: GatewayError | undefined
  ending: Ending | undefined
  respondedBy: 'gateway' | 'upstream' | 'none' = 'none'
  sentStatus = 0
  startedAt = 0
  endedAt = 0
  headIsFresh = false
  client: DownstreamStream | undefined
  /** The client's address from a trusted proxy; set by the data plane. */
  forwardedFor: Peer | undefined
  /** Known even after the socket of the client has closed. */
  connectedSource: Peer = unknownPeer
  protected tunnel: Tunnel | undefined
  protected tunnelWatcher: TunnelWatcher | undefined
  /** Options of the tunnel of a CONNECT; undefined for other requests. */
  protected tunnelOptions: TunnelOptions | undefined
  /** Set until the first bytes of the tunnel's client have been checked. */
  #serverNameCheck: ServerNameCheck | undefined
  protected hasResponse = false
  /** The read of the response's body that the data plane waits for. */
  protected responseRead: BodyRead | undefined
  /** Mirrors of the request that have not been started. */
  protected mirrors: MirrorTarget[] | undefined
  /** The body of a response of the gateway's own that is written piece by piece. */
  protected ownStream: OwnStream | undefined
  /** The framing of the response that is being sent. */
  protected framing: Framing = withoutContent
  /** Whether the upstream has sent the whole response, so that only the client must still drain. */
  protected isUpstreamDone = false
  /** Body bytes of a response of the gateway's own. */
  protected ownBytes = 0

  constructor(parts: EngineParts, requestSource: BodySource, responseSource: BodySource) {
    this.requestSource = new ExchangeBody(parts, requestSource, this)
    this.responseSource = new ExchangeBody(parts, responseSource, this)
  }

  abstract onReturned(): void
  abstract onReturnFailed(error: GatewayError): void
  /** Breaks off what is under way because of an error. */
  protected abstract stop(error: GatewayError, ending: Ending): void

  mirror(address: UpstreamAddress, race?: AddressRace): void {
    // The head is copied now: fields that are added later, such as credentials, are only for the
    // backend.
    const head = this.request.unframedText()
    this.mirrors ??= []
    this.mirrors.push({ address, race, head })
  }

  protected startMirrors(parts: EngineParts): void {
    if (this.mirrors !== undefined) startMirror(parts, this.mirrors, this)
    this.mirrors = undefined
  }

  get receivedFields(): ReceivedFields {
    return this.request.fields
  }

  receivedNames(isWanted: (name: string) => boolean): readonly string[] {
    return this.request.fields.receivedNames(isWanted)
  }

  takeFields(isTaken: (name: string) => boolean): readonly FieldPair[] {
    return this.request.fields.takeReceived(isTaken)
  }

  get requestBody(): ExchangeBody {
    return this.requestSource.outgoing
  }

  get responseBody(): ExchangeBody {
    return this.responseSource.outgoing
  }

  get port(): number {
    return this.client?.connection.port ?? 0
  }

  get tls(): TlsChoice | undefined {
    return this.client?.connection.tls
  }

  protected serve(client: DownstreamStream): void {
    this.client = client
    this.connectedSource = client.connection.addresses.source
  }

  get source(): Peer {
    return this.forwardedFor ?? this.connectedSource
  }

  get rawSource(): Peer {
    const socket = this.client?.connection.transport.socket
    return socket === undefined ? unknownPeer : peerOf(socket)
  }

  get local(): Peer {
    return this.client?.connection.addresses.local ?? unknownPeer
  }

  get peerCertificate(): PeerCertificate | undefined {
    const socket = this.client?.connection.transport.socket
    return socket === undefined ? undefined : certificateOf(socket)
  }

  get isOver(): boolean {
    return this.ending !== undefined
  }

  get response(): ResponseHeadView | undefined {
    return this.hasResponse ? this.responseHead : undefined
  }

  bufferResponse(maxBytes: number, watcher?: BodyWatcher): void {
    this.responseRead = this.responseBody.startReading(maxBytes, watcher)
  }

  /** Returns the body that the data plane waits for, once, as soon as it has been read. */
  protected takeWholeResponse(): BufferedBody | undefined {
    const body = this.responseRead?.body
    if (body !== undefined) this.responseRead = undefined
    return body
  }

  /** Forgets the response, which has failed. */
  protected dropResponse(error: GatewayError): void {
    this.responseSource.failAll(error)
    this.responseRead = undefined
    this.hasResponse = false
  }

  get requestBytes(): number {
    return this.requestSource.receivedBytes + (this.tunnel?.bytesUp ?? 0)
  }

  get responseBytes(): number {
    return this.ownBytes + this.responseBody.sentBytes + (this.tunnel?.bytesDown ?? 0)
  }

  /** Bytes that were moved on the client connection. */
  get movedBytes(): number {
    return this.requestBytes + this.responseBytes
  }

  /** Whether the first bytes of the tunnel's client are still being checked. */
  get awaitsHello(): boolean {
    return this.#serverNameCheck !== undefined
  }

  watchTunnel(watcher: TunnelWatcher): void {
    this.tunnelWatcher = watcher
  }

  /** Whether another forward can still send the whole request. */
  get isReplayable(): boolean {
    return this.requestBody.isReplayable
  }

  /** Whether the method is idempotent (RFC 9110 9.2.2), or the client says that the request is. */
  get isIdempotent(): boolean {
    const { method, headers } = this.request
    return idempotentMethods.has(method) || headers.get('idempotency-key') !== undefined
  }

  get isHead(): boolean {
    return this.request.isHead
  }

  /** The protocols that the client wants to switch to; undefined if there are none. */
  get upgrade(): string | undefined {
    return this.request.upgrade
  }

  get isRequestSent(): boolean {
    return this.requestBody.sent
  }

  get bufferHolder(): Socket | undefined {
    return this.client?.bufferHolder
  }

  /** Whether a response with this status opens the tunnel that the request asks for. */
  protected opensTunnel(status: number): boolean {
    return status === 101 || (this.tunnelOptions !== undefined && status < 300)
  }

  /** Starts the tunnel, which copies bytes both ways from now on. */
  protected startTunnel(client: DownstreamStream, upstream: UpstreamStream): void {
    const head = this.responseHead
    const { serverName } = this.tunnelOptions ?? {}
    this.#serverNameCheck = serverName === undefined ? undefined : new ServerNameCheck(serverName)
    const protocol = this.tunnelOptions === undefined ? (head.upgrade ?? '') : undefined
    const clientEnd = client.startTunnel(head.text('none'), protocol)
    this.tunnel = new Tunnel(clientEnd, upstream.tunnelEnd)
    client.mustClose = true
    upstream.startTunnel()
    client.openTunnel()
  }

  onTunnelBytes(bytes: Buffer, start: number, end: number): void {
    this.tunnelWatcher?.(bytes, start, end)
    this.tunnel?.fromUpstream(bytes, start, end)
  }

  onTunnelEnd(): void {
    this.tunnel?.upstreamEnded()
    this.client?.limitTunnel()
  }

  onUpstreamDrain(): void {
    if (this.tunnel !== undefined) this.tunnel.upstreamDrained()
    else this.requestBody.drained()
  }

  onClientTunnelBytes(bytes: Buffer, start: number, end: number): void {
    if (this.#serverNameCheck === undefined) this.tunnel?.fromClient(bytes, start, end)
    else this.#checkServerName(this.#serverNameCheck, bytes.subarray(start, end))
  }

  #checkServerName(check: ServerNameCheck, bytes: Buffer): void {
    const checked = check.take(bytes)
    if (checked === undefined) return
    this.#serverNameCheck = undefined
    if (checked instanceof GatewayError) this.stop(checked, 'client-closed')
    else this.tunnel?.fromClient(checked, 0, checked.length)
  }

  onClientTunnelEnd(): void {
    if (this.#serverNameCheck === undefined) this.tunnel?.clientEnded()
    else this.stop(this.#serverNameCheck.end(), 'client-closed')
  }

  protected markOwnResponse(): void {
    this.hasResponse = true
    this.respondedBy = 'gateway'
    this.sentStatus = this.responseHead.status
  }

  /**
   * Takes back a response of which nothing has been sent yet, because it cannot be completed. Returns
   * false if the client may have received a part of it.
   */
  protected takeBackResponse(error: GatewayError): boolean {
    if (this.client?.takeBack() !== true) return false
    this.dropResponse(error)
    this.responseSource.start('none', 0, false)
    this.respondedBy = 'none'
    this.sentStatus = 0
    return true
  }

  protected closeOwnStream(): void {
    this.ownStream?.close()
    this.ownStream = undefined
  }

  /** Rejects reads of bodies that will not be complete. */
  protected failBodies(): void {
    const gone = this.error ?? new GatewayError('client_closed')
    if (!this.requestSource.ended) this.requestSource.failAll(gone)
    else if (!this.requestBody.ended) this.requestBody.fail(gone)
    this.responseSource.failAll(gone)
  }

  /** Decides how a relayed response is framed, after all edits. */
  protected frame(client: DownstreamStream): Framing {
    const { request, responseHead, responseBody } = this
    const { status: wanted } = responseHead
    const status = this.opensTunnel(wanted) ? wanted : statusForClient(request, wanted)
    if (status !== responseHead.status) responseHead.status = status
    const framing = frameResponse(request, responseHead, responseBody, client.framesBodies)
    if (framing.isCloseDelimited) client.mustClose = true
    return framing
  }

  /** Drops the content that a policy has given to a request that must not have any. */
  protected dropForbiddenContent(): void {
    if (!admitsContent(this.request)) this.requestBody.replace(nothing)
  }

  get requestFraming(): FramingFields {
    return frameRequest(this.request, this.requestBody)
  }

  /** Forgets the last request and releases its bytes. */
  protected clear(): void {
    this.request.release()
    this.responseHead.release()
    this.requestSource.start('none', 0, false)
    this.responseSource.start('none', 0, false)
    this.learned.clear()
    this.extensions.clear()
    this.place = noPlace
    this.forwardedFor = undefined
    this.connectedSource = unknownPeer
    this.backend = undefined
    this.bufferLimit = defaultBufferLimit
    this.state = undefined
    this.error = undefined
    this.ending = undefined
    this.endedAt = 0
    this.respondedBy = 'none'
    this.sentStatus = 0
    this.tunnel = undefined
    this.tunnelWatcher = undefined
    this.tunnelOptions = undefined
    this.#serverNameCheck = undefined
    this.mirrors = undefined
    this.hasResponse = false
    this.responseRead = undefined
    this.framing = withoutContent
    this.isUpstreamDone = false
    this.ownBytes = 0
  }
}

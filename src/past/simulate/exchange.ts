/** An exchange without connections. It ends with a verdict instead of sending anything. */

import type {
  ReceivedFields,
  ResponseStream,
  ServerExchange,
} from '../../engines/http/contracts/requests.ts'
import type { TlsChoice } from '../../engines/http/tls/tls-choice.ts'
import { RequestContext } from '../../gateway/proxy/request/request-context.ts'
import { GatewayError } from '../../ground/errors/index.ts'
import type {
  ChosenBackend,
  FieldPair,
  Peer,
  PeerCertificate,
  RoutePlace,
} from '../../ground/exchange/exchange.ts'
import { Extensions } from '../../ground/exchange/extensions.ts'
import { SimulatedBody } from './body.ts'
import { SimulatedHead } from './head.ts'
import { SimulatedLearned } from './learned.ts'
import type { SimulatedHeader, SimulatedOutcome, SimulatedRequest, SimulatedStep } from './types.ts'
import { Unknowns } from './unknowns.ts'

const noPlace: RoutePlace = { gateway: '', listener: '' }
const unknownPeer: Peer = { address: '', port: 0 }
/** Only the recorder reads them, and nothing is recorded. */
const noFields: ReceivedFields = {
  bytes: Buffer.alloc(0),
  base: 0,
  spans: new Int32Array(0),
  count: 0,
}
/** Buffer limit of the engine, unless the Gateway sets another one. */
const defaultBufferLimit = 2_097_152

/** Thrown to end a request whose verdict is known before it is complete. Its text is never used. */
const stopped = new GatewayError('client_closed')

/** What an exchange asks the simulator. */
export interface ExchangeOwner {
  /** Called when a route or a backend is chosen. May return why the request ends here. */
  onPlace(exchange: SimulatedExchange): SimulatedVerdict | undefined
  onBackend(exchange: SimulatedExchange): SimulatedVerdict | undefined
  findValue(header: SimulatedHeader): string | undefined
}

export type SimulatedVerdict = Pick<
  SimulatedOutcome,
  'verdict' | 'status' | 'reason' | 'isRefusal' | 'otherSettings'
>

export class SimulatedExchange implements ServerExchange {
  readonly unknowns = new Unknowns()
  readonly request = new SimulatedHead(this.unknowns)
  readonly requestBody = new SimulatedBody(this.unknowns)
  readonly learned = new SimulatedLearned(this.unknowns)
  readonly extensions = new Extensions()
  readonly response = undefined
  readonly responseBody = undefined
  readonly headIsFresh = false
  readonly receivedFields = noFields
  readonly requestBytes = 0
  readonly responseBytes = 0
  readonly isReplayable = true
  readonly endedAt = 0
  readonly error = undefined
  input!: SimulatedRequest
  port = 0
  tls: TlsChoice | undefined
  startedAt = 0
  sentStatus = 0
  respondedBy: 'gateway' | 'upstream' | 'none' = 'none'
  bufferLimit = defaultBufferLimit
  forwardedFor: Peer | undefined
  state: unknown
  steps: SimulatedStep[] = []
  /** Set once the request is decided; what happens later has no effect. */
  outcome: SimulatedVerdict | undefined
  /** Why the chosen backend is unknown. */
  backendProblem: string | undefined
  /** Why the next answer is given. */
  detail: string | undefined
  /** Called when the request is decided. */
  onOutcome: (() => void) | undefined
  readonly #owner: ExchangeOwner
  #place = noPlace
  #backend: ChosenBackend | undefined

  constructor(owner: ExchangeOwner) {
    this.#owner = owner
  }

  begin(input: SimulatedRequest, port: number, tls: TlsChoice | undefined): void {
    this.input = input
    this.request.load(input, (header) => this.#owner.findValue(header))
    this.requestBody.load(bodyOf(input))
    this.learned.reset()
    this.extensions.clear()
    this.port = port
    this.tls = tls
    this.startedAt = (input.timeMs ?? Date.now()) - performance.timeOrigin
    this.sentStatus = 0
    this.respondedBy = 'none'
    this.bufferLimit = defaultBufferLimit
    this.forwardedFor = undefined
    this.state = undefined
    this.steps = []
    this.outcome = undefined
    this.backendProblem = undefined
    this.detail = undefined
    this.onOutcome = undefined
    this.unknowns.reason = undefined
    this.unknowns.isStrict = false
    this.unknowns.onRead = undefined
    this.#place = noPlace
    this.#backend = undefined
  }

  /** Decides the request. Only the first call counts. */
  decide(verdict: SimulatedVerdict): void {
    if (this.outcome !== undefined) return
    this.outcome = verdict
    this.unknowns.isStrict = false
    this.unknowns.onRead = undefined
    this.onOutcome?.()
  }

  #stop(verdict: SimulatedVerdict | undefined): void {
    if (verdict === undefined) return
    this.decide(verdict)
    throw stopped
  }

  get context(): RequestContext | undefined {
    return this.state instanceof RequestContext ? this.state : undefined
  }

  get place(): RoutePlace {
    return this.#place
  }

  set place(place: RoutePlace) {
    this.#place = place
    if (place.route !== undefined) this.#stop(this.#owner.onPlace(this))
  }

  get backend(): ChosenBackend | undefined {
    return this.#backend
  }

  set backend(backend: ChosenBackend | undefined) {
    this.#backend = backend
    if (backend !== undefined) this.#stop(this.#owner.onBackend(this))
  }

  get source(): Peer {
    return this.forwardedFor ?? this.connectedSource
  }

  get connectedSource(): Peer {
    const { input, unknowns } = this
    return input.source ?? unknowns.read('the client address is not known') ?? unknownPeer
  }

  get rawSource(): Peer {
    const { input, unknowns } = this
    if (input.recorded === undefined && input.source !== undefined) return input.source
    return unknowns.read('the address of the connection is not known') ?? unknownPeer
  }

  get local(): Peer {
    const { port, unknowns } = this
    return {
      get address() {
        return unknowns.read('the address of the gateway is not known') ?? ''
      },
      port,
    }
  }

  get peerCertificate(): PeerCertificate | undefined {
    const listener = this.context?.listener?.resource
    if (this.tls === undefined || listener?.tls?.clients === undefined) return undefined
    return this.unknowns.read('the client certificate is not recorded')
  }

  get isOver(): boolean {
    return this.outcome !== undefined
  }

  get ending(): 'complete' | undefined {
    return this.isOver ? 'complete' : undefined
  }

  receivedNames(isWanted: (name: string) => boolean): readonly string[] {
    return this.request.headers.receivedNames(isWanted)
  }

  takeFields(isTaken: (name: string) => boolean): readonly FieldPair[] {
    return this.request.headers.take(isTaken)
  }

  respond(status: number): void {
    if (this.outcome !== undefined) return
    this.sentStatus = status
    this.respondedBy = 'gateway'
    this.decide(this.#verdictOf(status))
  }

  #verdictOf(status: number): SimulatedVerdict {
    const { context } = this
    if (context?.error?.code === 'route_not_found') {
      const problem = this.#owner.onPlace(this)
      if (problem !== undefined) return problem
    }
    const reason = this.detail ?? errorText(context?.error) ?? context?.reason
    return { verdict: 'answer', status, ...(reason !== undefined && { reason }) }
  }

  respondStream(status: number): ResponseStream | undefined {
    this.respond(status)
    return undefined
  }

  forward(): void {
    this.decide({ verdict: 'forward' })
  }

  relay(): void {
    // Nothing to do: there is no upstream.
  }

  watchTunnel(): void {
    // Nothing to do: there is no upstream.
  }

  bufferResponse(): void {
    // Nothing to do: there is no response.
  }

  mirror(): void {
    // Nothing to do: mirrors do not affect the request.
  }
}

function errorText(error: GatewayError | undefined): string | undefined {
  return error === undefined ? undefined : `${error.code}: ${error.message}`
}

const bodiless = new Set(['GET', 'HEAD', 'DELETE', 'OPTIONS', 'TRACE'])
const nothing = new Uint8Array()

/** Returns the body; undefined if it is unknown. */
function bodyOf({ method, headers, body, recorded }: SimulatedRequest): Uint8Array | undefined {
  if (body !== undefined) return body
  // If the request was forwarded, all of its body has been counted.
  if (recorded?.route.endpoint !== undefined && recorded.response.requestBytes === 0) return nothing
  const isFramed = headers.some(({ name }) => /^(?:content-length|transfer-encoding)$/i.test(name))
  return bodiless.has(method) && !isFramed ? nothing : undefined
}

import type { ServerExchange, TunnelOptions } from '../../../engines/http/contracts/requests.ts'
import type { UpstreamAddress } from '../../../engines/http/sockets/upstream-address.ts'
import type { GatewayError } from '../../../ground/errors/index.ts'
import type { RespondVerdict } from '../../../ground/exchange/exchange.ts'
import type { Step } from '../../policies/define.ts'
import {
  type ListenerPlacement,
  noObservers,
  type Observers,
  type RulePlacement,
} from '../config/placement.ts'
import type { BoundPolicies } from '../config/policies.ts'
import type { RouteEntry } from '../config/port-table.ts'
import type { CompiledBackend } from '../config/rules.ts'
import type { CircuitShare } from '../upstream/circuits.ts'
import type { Destination } from '../upstream/destination.ts'
import type { UpstreamEndpoint } from '../upstream/endpoint.ts'
import type { BackendCall, NamedProvider } from './backend-call.ts'
import type { RequestTrace } from './request-trace.ts'
import type { RequestSession } from './session-tokens.ts'

/** The request as the client sent it, for the log. */
interface OriginalRequest {
  readonly method: string
  readonly host: string
  readonly path: string
}

/** The tunnel that a CONNECT asks for. */
interface RequestedTunnel extends TunnelOptions {
  /** Port of the listener, which counts the tunnel. */
  readonly listenerPort: number
  /** Set for `mode: Tunnel`: the tunnel ends at a listener of this gateway. */
  readonly inner?: UpstreamAddress
}

interface FailedAttempt {
  readonly endpoint: string
  /** The provider that the attempt went to, if it has a name. */
  readonly provider: NamedProvider | undefined
  /** `status 503`, or the code of the error. */
  readonly failure: string
}

/** Decides which requests are recorded, and under which id. */
export interface RequestNamer {
  /** Returns the id that a response with this status carries, if the request is recorded. */
  idFor(context: RequestContext, status: number): string | undefined
}

/** The header that carries the id of a request. */
export const idHeader = 'x-request-id'

/** One attempt to send a request to the upstream. */
export class Attempt {
  /** Another address of the same host name if the connection was made to that one. */
  address: UpstreamAddress
  /** The endpoint that counts the attempt until it is over. */
  endpoint: UpstreamEndpoint | undefined
  /** When the attempt started, in milliseconds of `performance.now()`. */
  readonly startedAt: number
  isOver = false
  /** Counts the attempt at the circuit breaker of the backend, if it has one. */
  circuit: CircuitShare | undefined

  constructor(address: UpstreamAddress, endpoint?: UpstreamEndpoint, startedAt = 0) {
    this.address = address
    this.endpoint = endpoint
    this.startedAt = startedAt
  }

  /** Ends the attempt, whatever its outcome. */
  end(): void {
    if (this.isOver) return
    this.isOver = true
    this.endpoint?.end()
    this.circuit?.giveBack()
  }
}

/** The policies of a request, and how many of their steps have passed. */
export class StepProgress {
  preRouting: BoundPolicies | undefined
  postRouting: BoundPolicies | undefined
  /** Numbers of PreRouting and PostRouting steps that have passed. Only these steps see the response. */
  preRoutingDone = 0
  postRoutingDone = 0
  /** Number of direct responses that have passed. */
  directResponsesDone = 0
  /** Number of steps that have passed of the destination of the last attempt. */
  backendStepsDone = 0
  /** The step that is running. It stays set if the step responds or fails. */
  running: Step | undefined

  /** Whether no further step sees the response, because one has failed. */
  isResponseDone = false

  /** Number of steps that see the response. */
  get passed(): number {
    return this.isResponseDone ? 0 : this.preRoutingDone + this.postRoutingDone
  }

  /** Returns one of the steps that see the response, in the order in which they ran. */
  at(index: number): Step | undefined {
    const { preRouting, postRouting, preRoutingDone } = this
    return index < preRoutingDone
      ? preRouting?.steps[index]
      : postRouting?.steps[index - preRoutingDone]
  }
}

/** The state of one exchange. Each part keeps the configuration that was in force when it was set. */
export class RequestContext {
  readonly exchange: ServerExchange
  /** Position in the event log of the configuration in force when the request arrived. */
  readonly position: number
  /** Undefined if nothing is recorded. */
  readonly namer: RequestNamer | undefined
  listener: ListenerPlacement | undefined
  /** Access log and tracing settings of the Gateway. */
  observers: Observers = noObservers
  /** Id of the route that was found together with the listener; negative if no route matched. */
  routeId = -1
  /** Whether `routeId` is still valid. False if the head may have changed since the route was found. */
  isRouteKnown = false
  /** The tunnel that a CONNECT asks for, once the listener has admitted it. */
  tunnel: RequestedTunnel | undefined
  /** The matched rule, once it is settled. */
  routed: RouteEntry | undefined
  backend: CompiledBackend | undefined
  /** The session of a rule with session persistence. */
  session: RequestSession | undefined
  /** Undefined if no policy has a step for the request. */
  steps: StepProgress | undefined
  /** Whether filters of the rule, or of the backendRef, were applied; they also change the response. */
  ruleFilters = false
  backendFilters = false
  /** Whether other routes sign browsers in, so that the backend must not set their cookies. */
  isBesideSignIn = false
  /** Set once the backend is resolved, if its kind makes a call for each request. */
  call: BackendCall | undefined
  /** Where the next attempt goes, or the last one went. */
  destination: Destination | undefined
  /** The last attempt. */
  attempt: Attempt | undefined
  /** Number of retries that were sent. */
  retries = 0
  /** Counts the request at the circuit breaker of the backend, once it is retried. */
  retryCircuit: CircuitShare | undefined
  /** Failed attempts before the last one; undefined if there are none. */
  failedAttempts: FailedAttempt[] | undefined
  /** Timer of the next attempt, set during its backoff. */
  backoff: NodeJS.Timeout | undefined
  /** The request before the first change of its head; undefined if there was none. */
  original: OriginalRequest | undefined
  /** The response with which the gateway responded; undefined if the upstream did. */
  verdict: RespondVerdict | undefined
  /** The error with which the gateway responded, perhaps in place of a verdict. */
  error: GatewayError | undefined
  /** The text of a refusal, for the log. */
  refusal: string | undefined
  /** Whether the response is a gRPC response. */
  isGrpc = false
  /** Id of the request, if it is recorded. */
  requestId: string | undefined
  /** The trace of the request; undefined if it gets no spans. */
  trace: RequestTrace | undefined
  /** Whether the exchange has ended. Its object may already serve another request. */
  over = false

  constructor(exchange: ServerExchange, position = 0, namer?: RequestNamer) {
    this.exchange = exchange
    this.position = position
    this.namer = namer
  }

  get placement(): RulePlacement | undefined {
    return this.routed?.placement
  }

  /** Why the gateway responded; undefined if the upstream did. */
  get reason(): string | undefined {
    return this.error?.row.reason ?? this.verdict?.reason
  }

  /** Whether a policy, filter or call changes the response. For most responses, none does. */
  get changesResponse(): boolean {
    const hasPassed = this.steps !== undefined && this.steps.passed > 0
    return (
      hasPassed ||
      this.ruleFilters ||
      this.backendFilters ||
      this.isBesideSignIn ||
      this.session !== undefined ||
      this.call?.changeResponse !== undefined
    )
  }

  /** Keeps the original request. Called before any change of the head. */
  keepOriginal(): void {
    this.original ??= originalOf(this.exchange)
  }
}

/** Returns the context of an exchange. Makes a new one if the exchange ended before its first phase. */
export function contextOf(exchange: ServerExchange): RequestContext {
  if (exchange.state instanceof RequestContext) return exchange.state
  const context = new RequestContext(exchange)
  exchange.state = context
  return context
}

export function originalOf({ request }: ServerExchange): OriginalRequest {
  const { method, authority, path, query } = request
  return { method, host: authority, path: query === undefined ? path : `${path}?${query}` }
}

/** Sets the header that tells the upstream which retry this is. */
export function nameRetry({ exchange, retries }: RequestContext): void {
  if (retries > 0) exchange.request.headers.set('x-retry-attempt', `${retries}`)
}

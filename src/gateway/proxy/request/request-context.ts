import type { ServerExchange } from '../../../engines/http/contracts/requests.ts'
import type { UpstreamAddress } from '../../../engines/http/sockets/upstream-address.ts'
import type { GatewayError } from '../../../ground/errors/index.ts'
import {
  type ListenerPlacement,
  noObservers,
  type Observers,
  type RulePlacement,
} from '../config/placement.ts'
import type { BoundPolicies } from '../config/policies.ts'
import type { CompiledBackend } from '../config/rules.ts'
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

/** The state of one exchange. Each part keeps the configuration that was in force when it was set. */
export class RequestContext {
  readonly exchange: ServerExchange
  listener: ListenerPlacement | undefined
  placement: RulePlacement | undefined
  /** The matched PathPrefix; undefined if the path was matched in another way. */
  prefix: string | undefined
  /** Path of the session cookie; undefined if the rule has no session persistence. */
  cookiePath: string | undefined
  session: RequestSession | undefined
  /** Id of the route that was found together with the listener; negative if no route matched. */
  routeId = -1
  /** Is `routeId` still valid? False if the head may have changed since the route was found. */
  isRouteKnown = false
  /** Access log and tracing settings of the Gateway. */
  observers: Observers = noObservers
  preRouting: BoundPolicies | undefined
  postRouting: BoundPolicies | undefined
  /** Number of PreRouting and PostRouting steps that have run. Only these steps see the response. */
  preRoutingDone = 0
  postRoutingDone = 0
  /** Numbers of direct responses that passed, and of steps of the destination of the last attempt. */
  answersDone = 0
  backendStepsDone = 0
  /** Is a step running? Stays true after a step that has answered or failed. */
  isInStep = false
  backend: CompiledBackend | undefined
  destination: Destination | undefined
  /** The address of the last attempt; undefined before the first attempt. */
  address: UpstreamAddress | undefined
  /** The endpoint that counts the running attempt. */
  endpoint: UpstreamEndpoint | undefined
  /** Set once the backend is resolved, if its kind makes a call for each request. */
  call: BackendCall | undefined
  /** When the last attempt started, in milliseconds of `performance.now()`. */
  attemptStartedAt = 0
  /** Number of retries that were sent. */
  retries = 0
  /** Failed attempts before the last one; undefined if there are none. */
  failedAttempts: FailedAttempt[] | undefined
  /** Number of the attempt. Retries and attempts at other destinations both increment it. */
  attempt = 0
  /** Timer of the next attempt, set during its backoff. */
  backoff: NodeJS.Timeout | undefined
  /**
   * Were filters of the rule, or of the backendRef, applied to the request? They then also change the
   * response.
   */
  ruleFilters = false
  backendFilters = false
  original: OriginalRequest | undefined
  /** Why the gateway responded; undefined if the upstream did. */
  reason: string | undefined
  error: GatewayError | undefined
  /** The text of a refusal, for the log. */
  refusal: string | undefined
  /** What decided that the gateway responds, for the record. */
  detail: string | undefined
  /** Undefined if nothing is recorded. */
  namer: RequestNamer | undefined
  /** Id of the request, if it is recorded. */
  requestId: string | undefined
  /** Position in the event log of the configuration in force when the request arrived. */
  position = 0
  /** Is the response a gRPC response? */
  isGrpc = false
  /** The trace of the request; undefined if it gets no spans. */
  trace: RequestTrace | undefined
  /** Has the exchange ended? Its object may already serve another request. */
  over = false

  constructor(exchange: ServerExchange) {
    this.exchange = exchange
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

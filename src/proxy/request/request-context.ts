import type { ServerExchange } from '../../engine/contracts/requests.ts'
import type { UpstreamAddress } from '../../engine/sockets/upstream-address.ts'
import type { GatewayError } from '../../errors/index.ts'
import { noObservers, type Observers } from '../config/observers.ts'
import type { ListenerPlacement, RulePlacement } from '../config/placement.ts'
import type { BoundPolicies } from '../config/policies.ts'
import type { CompiledBackend } from '../config/rules.ts'
import type { Destination } from '../upstream/destination.ts'
import type { UpstreamEndpoint } from '../upstream/endpoint.ts'
import type { BackendCall } from './backend-call.ts'
import type { RequestTrace } from './request-trace.ts'
import type { RequestSession } from './session/tokens.ts'

/** The request as the client sent it, for the log. */
interface OriginalRequest {
  readonly method: string
  readonly host: string
  readonly path: string
}

/**
 * What the data plane knows of one exchange. The parts of the configuration that a request has met
 * are kept here, so that a swap in the middle changes nothing for it.
 */
export class RequestContext {
  readonly exchange: ServerExchange
  listener: ListenerPlacement | undefined
  placement: RulePlacement | undefined
  /** The matched PathPrefix; undefined where the path matched in another way. */
  prefix: string | undefined
  /** Of a session's cookie; undefined where the rule keeps no sessions. */
  cookiePath: string | undefined
  session: RequestSession | undefined
  /** Id of the route that was found together with the listener; negative where there is none. */
  routeId = -1
  /** False once the head may have changed. */
  isRouteKnown = false
  /** Who else is told of the exchange. */
  observers: Observers = noObservers
  preRouting: BoundPolicies | undefined
  postRouting: BoundPolicies | undefined
  /** How many steps of each phase have run: those see the response. */
  preRoutingDone = 0
  postRoutingDone = 0
  backend: CompiledBackend | undefined
  destination: Destination | undefined
  /** Where the last attempt went; undefined before the first. */
  address: UpstreamAddress | undefined
  /** The endpoint that counts the attempt under way. */
  endpoint: UpstreamEndpoint | undefined
  /** Set once the backend is resolved, if its kind does more than to name a destination. */
  call: BackendCall | undefined
  /** In milliseconds of `performance.now()`. */
  attemptStartedAt = 0
  /** How often the request was sent again. */
  retries = 0
  /** Rises with every further attempt, whatever the reason. */
  attempt = 0
  /** Set while the next attempt waits for its time. */
  backoff: NodeJS.Timeout | undefined
  /** Filters that have taken effect, and so change the response as well. */
  ruleFilters = false
  backendFilters = false
  original: OriginalRequest | undefined
  /** Why the gateway answered; undefined where the upstream did. */
  reason: string | undefined
  error: GatewayError | undefined
  /** What a policy said when it refused the request. */
  refusal: string | undefined
  /** The response is one of gRPC. */
  isGrpc = false
  /** Undefined where the request gets no span. */
  trace: RequestTrace | undefined
  /** The exchange is gone: its object may serve another request already. */
  over = false

  constructor(exchange: ServerExchange) {
    this.exchange = exchange
  }

  /** Remembers the request before something may change it. */
  keepOriginal(): void {
    this.original ??= originalOf(this.exchange)
  }
}

/** A new one where the exchange ended before it had begun. */
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

/** Tells the upstream which retry of a request this is. */
export function nameRetry({ exchange, retries }: RequestContext): void {
  if (retries > 0) exchange.request.headers.set('x-retry-attempt', `${retries}`)
}

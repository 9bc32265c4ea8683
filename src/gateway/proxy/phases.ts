/**
 * The phases of a request, in order. A phase responds with a verdict, throws a GatewayError, or returns
 * undefined to continue. The last phase forwards the request. Responses are changed in `response.ts`.
 */
import type { UpstreamAddress } from '../../engines/http/sockets/upstream-address.ts'
import { andThen } from '../../ground/base/and-then.ts'
import { GatewayError } from '../../ground/errors/index.ts'
import type { ChosenBackend } from '../../ground/exchange/exchange.ts'
import { forwardingExtensions } from '../../ground/exchange/forwarding.ts'
import { routeRefusal } from '../../ground/exchange/route-refusal.ts'
import { circuitOf } from './attempts.ts'
import { type CompiledRule, type NamedTarget, pickBackend } from './config/rules.ts'
import { editRequest } from './filters/edit.ts'
import { redirectLocation } from './filters/redirect.ts'
import { limitForwards } from './max-forwards.ts'
import { applyForwardedRules, identifyClient, selectListener } from './request/arrival.ts'
import type { EarlyResponse } from './request/backend-call.ts'
import type { BackendKind, BackendKinds } from './request/backend-kind.ts'
import { hideSignIn } from './request/beside-sign-in.ts'
import type { DestinationOptions } from './request/destinations.ts'
import { startMirrors } from './request/mirrors.ts'
import { Attempt, type RequestContext } from './request/request-context.ts'
import { settlePath } from './request/request-path.ts'
import { findRoute, placementAhead, placementNow } from './request/route.ts'
import type { GatewayRuntime } from './request/runtime.ts'
import { resumeSession } from './request/session-persistence.ts'
import { nameReading, progressOf, runSteps } from './request/steps.ts'
import { startAttemptSpan } from './request/tracing.ts'
import { admitTunnel, tunnelOptions } from './request/tunnels.ts'
import type { Destination } from './upstream/destination.ts'
import { now } from './upstream/endpoint.ts'

/**
 * `askAnother` means that the destination cannot carry the request, and that `startOverPhases` try the next
 * one.
 */
export type PhaseResult = EarlyResponse | 'askAnother'
type Phase = (
  context: RequestContext,
  runtime: GatewayRuntime,
) => PhaseResult | Promise<PhaseResult>

export const requestPhases: readonly Phase[] = [
  // First of all, because every comparison of paths must use the path that is forwarded.
  // Fails with ambiguous_path.
  resolvePath,
  // Before any phase that may use the client's address, and before any change of the head.
  identifyClient,
  // Before the route is selected, because policies of a Gateway apply to its listeners.
  // Fails with listener_not_found, misdirected, network_unauthorized.
  selectListener,
  // Before any policy, because all of them may read the address of the client and the headers.
  applyForwardedRules,
  // Before any policy runs, because policies must find the credentials of a CONNECT in Authorization.
  // Fails with method_not_allowed, tunnel_refused, tunnel_limit.
  admitTunnel,
  // Before routing, because these policies may change what routes match on, or refuse the request.
  // Fails with policy_unenforceable.
  applyPreRouting,
  // After PreRouting policies, so that a header that they set can decide the route.
  // Fails with route_not_found.
  selectRoute,
  // Once, before phases that retries repeat: they keep the backend.
  chooseBackend,
  // Before any later phase can respond, because these policies protect the route.
  // Fails with policy_unenforceable.
  applyPostRouting,
  // After the policies, because the filters of the rule are more specific and take precedence.
  // Fails with rule_unusable, filter_failed.
  applyRuleFilters,
  // Before direct responses of policies, because filters of the rule take precedence.
  redirect,
  // Before a backend is resolved, because direct responses of policies need none.
  respondDirectly,
  // After every phase that may refuse the request, because the gateway responds for the backend here.
  limitForwards,
  // After the route's policies, because those of sign-in read their cookies.
  hideSignIn,
  // After the route's policies, because an unauthenticated client must not learn whether a backend exists.
  // Fails with no_backends, backend_invalid, service_not_found, backend_unsupported, no_endpoints,
  // dns_failed, destination_refused, endpoint_picker_failed, policy_unenforceable.
  resolveBackend,
  // Before the request is mirrored or changed, while it has the path that the client sent.
  authenticateClient,
  // Before the changes that are meant for the chosen backend alone, which mirrors must not get.
  startMirrors,
  // After the filters of the rule, because those of the chosen backendRef are more specific.
  // Fails with filter_failed.
  applyBackendFilters,
  // After every filter that may set the host, and after the host of the destination is known.
  rewriteHost,
  // Before credentials are added, because a signature covers the new body and path.
  // Fails with prompt_guard_failed.
  prepareRequest,
  // After all other changes of the body and path, because a signature covers them, and so that nothing
  // that could send credentials elsewhere sees them.
  // Fails with body_too_large, credentials_failed, credentials_unavailable.
  applyBackendPolicies,
  // After credentials are added, because some backends expect them in other headers.
  adaptHeaders,
  // Last, because it sends the request to the upstream.
  // Fails with connect_failed, connect_timeout, upstream_tls_failed, upstream_reset,
  // upstream_malformed, upstream_timeout, route_timeout, overloaded.
  forward,
]

/** The phases of a retry. The backend stays the same, but the endpoint may be another one. */
export const retryPhases: readonly Phase[] = [resolveBackend, applyBackendPolicies, forward]

/**
 * The phases of a retry for calls that rewrite the request for each attempt, since destinations may differ.
 */
export const startOverPhases: readonly Phase[] = [
  resolveBackend,
  applyBackendFilters,
  rewriteHost,
  prepareRequest,
  applyBackendPolicies,
  adaptHeaders,
  forward,
]

function resolvePath(context: RequestContext, { ambiguousPaths }: GatewayRuntime): undefined {
  if (ambiguousPaths !== 'keep') settlePath(context, ambiguousPaths)
}

function applyPreRouting(
  context: RequestContext,
  runtime: GatewayRuntime,
): PhaseResult | Promise<PhaseResult> {
  const policies = context.listener?.preRouting()
  if (policies === undefined) return undefined
  if (policies.closed !== undefined) throw new GatewayError('policy_unenforceable', policies.closed)
  if (policies.steps.length === 0) return undefined
  progressOf(context).preRouting = policies
  context.keepOriginal()
  // Keys are accepted according to the route that the request matches before these policies change it.
  const ahead = placementAhead(context, runtime.config)?.rule
  offerClientKeys(context, ahead, runtime.kinds)
  // The steps may change the head, so the route must be matched again.
  context.isRouteKnown = false
  const names = nameReading(policies, ahead)
  return runSteps(context, runtime, policies.steps, 'preRoutingDone', 0, names)
}

function selectRoute(
  context: RequestContext,
  runtime: GatewayRuntime,
): PhaseResult | Promise<PhaseResult> {
  if (context.tunnel?.inner !== undefined) return undefined
  placeRequest(context, runtime)
  return runtime.config.headers.routesByName ? placeByName(context, runtime) : undefined
}

/** Finds the route again once headers name the message of an MCP client. */
function placeByName(
  context: RequestContext,
  runtime: GatewayRuntime,
): PhaseResult | Promise<PhaseResult> {
  const { placement } = context
  // Messages of one batch must have the same route.
  const mayJoin = () => placementNow(context, runtime) === placement
  const kind = runtime.kinds.having('nameMessage', placement?.rule)
  const named = kind?.nameMessage?.(context, mayJoin)
  return andThen(named, placeAgain, context, runtime)
}

/** Finds the route again if a header was added that it may match, unless the request was refused. */
function placeAgain(
  refused: EarlyResponse,
  context: RequestContext,
  runtime: GatewayRuntime,
): EarlyResponse {
  if (context.over || refused !== undefined) return refused
  if (!context.isRouteKnown) placeRequest(context, runtime)
  return undefined
}

function placeRequest(context: RequestContext, runtime: GatewayRuntime): undefined {
  findRoute(context, runtime.config, runtime.heads)
  runtime.kinds.reroute(context)
  if (context.placement === undefined) throw new GatewayError('route_not_found')
  context.exchange.place = context.placement.place
}

function chooseBackend(context: RequestContext, { random, sessions }: GatewayRuntime): undefined {
  const rule = context.placement?.rule
  if (rule === undefined) return
  const isKept = rule.resource.session !== undefined
  context.backend =
    (isKept && resumeSession(context, rule, sessions)) || pickBackend(rule, random())
}

function applyPostRouting(
  context: RequestContext,
  runtime: GatewayRuntime,
): PhaseResult | Promise<PhaseResult> {
  // The key of the client may have been checked before its route was known.
  const refused = routeRefusal(context.exchange)
  if (refused !== undefined) return refused
  const policies = context.placement?.postRouting()
  if (policies === undefined) return undefined
  if (policies.closed !== undefined) throw new GatewayError('policy_unenforceable', policies.closed)
  if (policies.steps.length === 0 && policies.directResponses.length === 0) return undefined
  progressOf(context).postRouting = policies
  if (policies.steps.length === 0) return undefined
  context.keepOriginal()
  const rule = context.placement?.rule
  offerClientKeys(context, rule, runtime.kinds)
  const names = nameReading(policies, rule)
  return runSteps(context, runtime, policies.steps, 'postRoutingDone', 0, names)
}

/** Tells policies where clients of the rule's backends may send keys. */
function offerClientKeys(
  { exchange: { extensions } }: RequestContext,
  rule: CompiledRule | undefined,
  kinds: BackendKinds,
): void {
  const keys = kinds.having('clientKeys', rule)?.clientKeys
  if (keys !== undefined) extensions.set(forwardingExtensions.clientKeys, keys)
  else if (extensions.size > 0) extensions.delete(forwardingExtensions.clientKeys)
}

function applyRuleFilters(context: RequestContext): undefined {
  const rule = context.placement?.rule
  if (rule === undefined) return
  if (rule.unusable !== undefined) throw new GatewayError('rule_unusable', rule.unusable)
  context.ruleFilters = rule.filters.responseHeaders.length > 0
  if (rule.filters.edits.length === 0) return
  context.keepOriginal()
  editRequest(context.exchange.request, rule.filters, context.routed?.prefix)
}

function redirect(context: RequestContext): PhaseResult {
  const filter = context.placement?.rule.filters.redirect
  if (filter === undefined) return undefined
  const { exchange, routed } = context
  const location = redirectLocation(filter, exchange.request, exchange.port, routed?.prefix)
  if (location === undefined) throw new GatewayError('filter_failed', 'no location to redirect to')
  const headers = [['location', location]] as const
  return { kind: 'respond', status: filter.statusCode, headers, reason: 'DirectResponse' }
}

function respondDirectly(
  context: RequestContext,
  runtime: GatewayRuntime,
): PhaseResult | Promise<PhaseResult> {
  const directResponses = context.steps?.postRouting?.directResponses
  if (directResponses === undefined || directResponses.length === 0) return undefined
  return runSteps(context, runtime, directResponses, 'directResponsesDone')
}

function resolveBackend(
  context: RequestContext,
  runtime: GatewayRuntime,
): EarlyResponse | Promise<EarlyResponse> {
  const { backend, placement, exchange, tunnel } = context
  if (tunnel?.inner !== undefined) return setDestination(destinationOf(tunnel.inner), context)
  if (backend === undefined || placement === undefined) throw new GatewayError('no_backends')
  const kind = runtime.kinds.of(backend)
  exchange.backend = chosenBackend(backend, kind)
  // A kind that makes calls answers requests; a tunnel has none that it could read.
  if (tunnel !== undefined && kind?.begin !== undefined) {
    throw new GatewayError('method_not_allowed', `CONNECT to a backend of type ${kind.type}`)
  }
  if (kind?.begin !== undefined) context.call ??= kind.begin(context, backend)
  if (context.call !== undefined) return context.call.resolve()
  const options = optionsOf(context, runtime)
  const found = runtime.kinds.resolve(placement, backend, exchange.request, options, kind)
  return andThen(found, setDestination, context)
}

function optionsOf(
  { retries, session, destination, exchange }: RequestContext,
  { config }: GatewayRuntime,
): DestinationOptions | undefined {
  const options = retries === 0 ? session?.origin : { avoid: destination?.endpoint }
  return config.policies.hasSessionAffinity ? { ...options, exchange } : options
}

function setDestination(destination: Destination, context: RequestContext): undefined {
  context.destination = destination
}

/** Returns the destination of a tunnel that ends at a listener of this gateway. */
const destinationOf = (address: UpstreamAddress): Destination => ({
  address,
  authority: '',
  isHostname: false,
  settings: {},
  steps: [],
})

const unknownBackend = { type: 'unknown', protocol: 'http' } as const

/** The `backend` variable of each backendRef. Made again if the backend becomes one of another kind. */
const chosenBackends = new WeakMap<NamedTarget, ChosenBackend>()

/** Returns the variable `backend` of expressions. */
function chosenBackend(named: NamedTarget, kind: BackendKind | undefined): ChosenBackend {
  const { type, protocol } = kind ?? unknownBackend
  let chosen = chosenBackends.get(named)
  if (chosen?.type !== type) {
    chosen = { name: named.label ?? named.name, type, protocol }
    chosenBackends.set(named, chosen)
  }
  return chosen
}

function authenticateClient({ call }: RequestContext): EarlyResponse | Promise<EarlyResponse> {
  return call?.authenticate?.()
}

function applyBackendFilters(context: RequestContext): undefined {
  const filters = context.backend?.filters
  if (filters === undefined) return
  context.backendFilters = filters.responseHeaders.length > 0
  if (filters.edits.length === 0) return
  context.keepOriginal()
  editRequest(context.exchange.request, filters, context.routed?.prefix)
}

function rewriteHost(context: RequestContext): undefined {
  const { destination, exchange, placement, backend } = context
  if (destination === undefined) return
  if (placement?.rule.filters.setsHost === true || backend?.filters.setsHost === true) return
  const byDefault = destination.isHostname ? 'Auto' : 'None'
  if ((exchange.extensions.get(forwardingExtensions.hostRewrite) ?? byDefault) !== 'Auto') return
  context.keepOriginal()
  exchange.request.authority = destination.authority
}

function prepareRequest({ call }: RequestContext): PhaseResult | Promise<PhaseResult> {
  return call?.prepare?.()
}

function applyBackendPolicies(
  context: RequestContext,
  runtime: GatewayRuntime,
): PhaseResult | Promise<PhaseResult> {
  const { destination, exchange } = context
  if (destination === undefined || destination.steps.length === 0) return undefined
  const { steps, settings, address } = destination
  if (settings.bindsTokens === true) {
    const scheme = address.tls === undefined ? 'http' : 'https'
    exchange.extensions.set(forwardingExtensions.upstreamScheme, scheme)
  }
  context.keepOriginal()
  progressOf(context).backendStepsDone = 0
  return runSteps(context, runtime, steps, 'backendStepsDone')
}

function adaptHeaders({ call }: RequestContext): undefined {
  call?.adaptHeaders?.()
}

function forward(
  context: RequestContext,
  runtime: GatewayRuntime,
): PhaseResult | Promise<PhaseResult> {
  const { destination, exchange, call } = context
  if (destination === undefined) {
    if (call?.serve !== undefined) return call.serve()
    throw new GatewayError('no_backends')
  }
  const { address, endpoint } = destination
  const circuit = circuitOf(context, runtime)
  try {
    endpoint?.begin(runtime.cap)
  } catch (error) {
    circuit?.giveBack()
    throw error
  }
  // If the body was prepared, it has already arrived, so the time that the client needed does not count.
  const isFirst = context.failedAttempts === undefined && call?.prepare === undefined
  context.attempt = new Attempt(address, endpoint, isFirst ? exchange.startedAt : now())
  context.attempt.circuit = circuit
  if (context.trace !== undefined) startAttemptSpan(context, address)
  exchange.forward(address, forwardOptions(context))
  return undefined
}

/** Timeouts of the rule override those of a policy. If the rule sets 0, there is no limit. */
function forwardOptions(context: RequestContext) {
  const { placement, exchange, destination, call } = context
  const rule = placement?.rule.resource
  const settings = destination?.settings
  const byPolicy = exchange.extensions.get(forwardingExtensions.requestTimeoutMs)
  return {
    connectTimeoutMs: settings?.connectTimeoutMs ?? 0,
    race: destination?.race,
    tunnel: tunnelOptions(context),
    ...call?.firstEventTimeouts?.(),
    // A policy of the backend overrides the rule, because it is more specific.
    attemptTimeoutMs: settings?.requestTimeoutMs ?? rule?.backendTimeoutMs ?? 0,
    requestTimeoutMs: rule?.requestTimeoutMs ?? (typeof byPolicy === 'number' ? byPolicy : 0),
  }
}

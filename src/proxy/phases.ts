/**
 * The way of a request through the gateway, as one list. A phase answers (a verdict), throws a
 * GatewayError, or passes on by returning nothing; the last one forwards. Responses go back through
 * `response.ts`.
 */
import { GatewayError } from '../errors/index.ts'
import type { RespondVerdict, Verdict } from '../exchange/exchange.ts'
import { forwardingFacts } from '../exchange/forwarding.ts'
import type { Step } from '../policies/define.ts'
import { chosenBackend } from './chosen-backend.ts'
import { pickBackend } from './config/rules.ts'
import { editRequest } from './filters/edit.ts'
import { redirectLocation } from './filters/redirect.ts'
import { forwardedClient } from './forwarded-client.ts'
import { limitForwards } from './max-forwards.ts'
import { observeRequest } from './observe.ts'
import type { RequestContext } from './request/request-context.ts'
import { settlePath } from './request/request-path.ts'
import { findListener, findRoute, placementAhead } from './request/route.ts'
import type { GatewayRuntime } from './request/runtime.ts'
import { resumeSession } from './request/session/persistence.ts'
import { startAttemptSpan, startTrace } from './request/tracing.ts'
import { resolveDestination } from './resolve.ts'
import { now } from './upstream/choose.ts'
import { markVendorKeys } from './vendor-keys.ts'

type Answer = RespondVerdict | undefined
/** `askAnother`: the chosen destination cannot carry the request; `startOverPhases` ask the next. */
export type PhaseResult = Answer | 'askAnother'
type Phase = (
  context: RequestContext,
  runtime: GatewayRuntime,
) => PhaseResult | Promise<PhaseResult>

export const requestPhases: readonly Phase[] = [
  // Before everything else: whatever compares paths must see the one that is forwarded.
  // Fails with ambiguous_path.
  resolvePath,
  // Before anything that may ask who the client is, and before any edit of the head.
  identifyClient,
  // Policies of a Gateway apply to its listeners, whatever the route.
  // Fails with listener_not_found, misdirected.
  selectListener,
  // Before routing: these policies may change what routes match on, or refuse at once.
  // Fails with policy_unenforceable.
  applyPreRouting,
  // After PreRouting, so that a header set there can decide the route.
  // Fails with route_not_found.
  selectRoute,
  // Once per request and before the policies, which may be told where the request will go.
  chooseBackend,
  // Every protection of the route; nothing below may answer a request that these refuse.
  // Fails with policy_unenforceable.
  applyPostRouting,
  // After the policies: the filters of the rule are more specific and have the last word.
  // Fails with rule_unusable, filter_failed.
  applyRuleFilters,
  // Filters of the rule precede answers of policies, so a redirect beats a direct response.
  redirect,
  // Needs no backend, so it comes before one is resolved.
  answerDirectly,
  // Here the gateway stands in for the backend, and so after everything that may refuse the request.
  limitForwards,
  // Only now: an unauthenticated caller must not learn whether a backend exists.
  // Fails with no_backends, backend_invalid, service_not_found, backend_unsupported, no_endpoints,
  // dns_failed, destination_refused, endpoint_picker_failed, policy_unenforceable.
  resolveBackend,
  // Before the request is copied or changed, while its path is as the client knows it.
  authenticateClient,
  // Mirrors see what the backend would see, without what is meant for this one backend alone.
  startMirrors,
  // The most specific edits, of the chosen backendRef.
  // Fails with filter_failed.
  applyBackendFilters,
  // After every edit that may set the host, and once the destination's name is known.
  rewriteHost,
  // Before credentials are added: a signature covers the body and the path that it makes.
  // Fails with prompt_guard_failed.
  prepareRequest,
  // Last: credentials must not be seen by anything that could send them elsewhere, and a signature
  // covers what all the others have made of the request.
  // Fails with body_too_large, credentials_failed.
  applyBackendPolicies,
  // Backends may expect credentials in places of their own.
  adaptHeaders,
  // The upstream gets the request.
  // Fails with connect_failed, connect_timeout, upstream_tls_failed, upstream_reset,
  // upstream_malformed, upstream_timeout, route_timeout, overloaded.
  forward,
]

/** The way of a request that is sent again: the same backend, perhaps another endpoint. */
export const retryPhases: readonly Phase[] = [resolveBackend, applyBackendPolicies, forward]

/** The way of one that each attempt writes anew: the next destination may want it quite different. */
export const startOverPhases: readonly Phase[] = [
  resolveBackend,
  applyBackendFilters,
  rewriteHost,
  prepareRequest,
  applyBackendPolicies,
  adaptHeaders,
  forward,
]

function identifyClient(
  { exchange }: RequestContext,
  { isTrustedProxy }: GatewayRuntime,
): undefined {
  if (isTrustedProxy === undefined) return
  exchange.forwardedFor = forwardedClient(exchange.request, exchange.source, isTrustedProxy)
}

function resolvePath(context: RequestContext, { ambiguousPaths }: GatewayRuntime): undefined {
  if (ambiguousPaths !== 'keep') settlePath(context, ambiguousPaths)
}

function selectListener(
  context: RequestContext,
  { config, heads, random }: GatewayRuntime,
): undefined {
  findListener(context, config, heads)
  if (context.listener === undefined) throw new GatewayError('listener_not_found')
  context.exchange.place = context.listener.place
  const { http } = context.listener.frontend().client
  if (http?.maxBufferBytes !== undefined) context.exchange.bufferLimit = http.maxBufferBytes
  context.observers = context.listener.observers()
  if (context.observers.isReading) observeRequest(context)
  if (context.observers.tracing !== undefined) startTrace(context, random)
}

function applyPreRouting(
  context: RequestContext,
  runtime: GatewayRuntime,
): PhaseResult | Promise<PhaseResult> {
  const policies = context.listener?.preRouting()
  if (policies === undefined) return undefined
  if (policies.closed !== undefined) throw new GatewayError('policy_unenforceable', policies.closed)
  context.preRouting = policies
  if (policies.steps.length === 0) return undefined
  context.keepOriginal()
  // Policies judge the request by the route that it takes as it stands.
  markVendorKeys(context, placementAhead(context, runtime.config)?.rule, runtime.kinds)
  // The route was found together with the listener, by the head before these steps.
  context.isRouteKnown = false
  return runSteps(context, policies.steps, () => {
    context.preRoutingDone++
  })
}

function selectRoute(context: RequestContext, runtime: GatewayRuntime): undefined {
  findRoute(context, runtime.config, runtime.heads)
  for (const kind of runtime.kinds.rerouting) kind.reroute?.(context)
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
  const policies = context.placement?.postRouting()
  if (policies === undefined) return undefined
  if (policies.closed !== undefined) throw new GatewayError('policy_unenforceable', policies.closed)
  context.postRouting = policies
  if (policies.steps.length === 0) return undefined
  context.keepOriginal()
  markVendorKeys(context, context.placement?.rule, runtime.kinds)
  return runSteps(context, policies.steps, () => {
    context.postRoutingDone++
  })
}

function applyRuleFilters(context: RequestContext): undefined {
  const rule = context.placement?.rule
  if (rule === undefined) return
  if (rule.unusable !== undefined) throw new GatewayError('rule_unusable', rule.unusable)
  context.ruleFilters = rule.filters.responseHeaders.length > 0
  if (rule.filters.edits.length === 0) return
  context.keepOriginal()
  editRequest(context.exchange.request, rule.filters, context.prefix)
}

function redirect(context: RequestContext): PhaseResult {
  const filter = context.placement?.rule.filters.redirect
  if (filter === undefined) return undefined
  const { exchange, prefix } = context
  const location = redirectLocation(filter, exchange.request, exchange.port, prefix)
  if (location === undefined) throw new GatewayError('filter_failed', 'no location to redirect to')
  const headers = [['location', location]] as const
  return { kind: 'respond', status: filter.statusCode, headers, reason: 'DirectResponse' }
}

function answerDirectly(context: RequestContext): PhaseResult | Promise<PhaseResult> {
  const answers = context.postRouting?.answers
  if (answers === undefined || answers.length === 0) return undefined
  return runSteps(context, answers, () => {})
}

function resolveBackend(
  context: RequestContext,
  runtime: GatewayRuntime,
): Answer | Promise<Answer> {
  const { backend, placement, exchange } = context
  if (backend === undefined || placement === undefined) throw new GatewayError('no_backends')
  const kind = runtime.kinds.of(backend)
  exchange.backend = chosenBackend(backend, kind)
  if (kind?.begin !== undefined) context.call ??= kind.begin(context, backend)
  if (context.call !== undefined) return context.call.resolve()
  const options =
    context.retries === 0 ? context.session?.origin : { avoid: context.destination?.endpoint }
  const found = resolveDestination(runtime, placement, backend, exchange.request, options)
  if (!(found instanceof Promise)) {
    context.destination = found
    return undefined
  }
  return found.then((destination) => {
    context.destination = destination
    return undefined
  })
}

function authenticateClient({ call }: RequestContext): Answer | Promise<Answer> {
  return call?.authenticate?.()
}

function startMirrors(
  context: RequestContext,
  runtime: GatewayRuntime,
): undefined | Promise<undefined> {
  const { placement } = context
  if (placement === undefined || placement.rule.mirrors.length === 0) return undefined
  return sendMirrors(context, runtime)
}

async function sendMirrors(context: RequestContext, runtime: GatewayRuntime): Promise<undefined> {
  const { placement, exchange } = context
  if (placement === undefined) return
  for (const mirror of placement.rule.mirrors) {
    const { numerator, denominator } = mirror.filter
    if (runtime.random() * denominator >= numerator) continue
    try {
      const found = await resolveDestination(runtime, placement, mirror, exchange.request)
      if (!context.over) exchange.mirror(found.address, found.race)
    } catch (error) {
      // A mirror never matters to the request; one that cannot be resolved is not sent.
      if (!(error instanceof GatewayError)) throw error
    }
  }
}

function applyBackendFilters(context: RequestContext): undefined {
  const filters = context.backend?.filters
  if (filters === undefined) return
  context.backendFilters = filters.responseHeaders.length > 0
  if (filters.edits.length === 0) return
  context.keepOriginal()
  editRequest(context.exchange.request, filters, context.prefix)
}

function rewriteHost(context: RequestContext): undefined {
  const { destination, exchange, placement, backend } = context
  if (destination === undefined) return
  if (placement?.rule.filters.setsHost === true || backend?.filters.setsHost === true) return
  const byDefault = destination.isHostname ? 'Auto' : 'None'
  if ((exchange.facts.get(forwardingFacts.hostRewrite) ?? byDefault) !== 'Auto') return
  context.keepOriginal()
  exchange.request.authority = destination.authority
}

function prepareRequest({ call }: RequestContext): PhaseResult | Promise<PhaseResult> {
  return call?.prepare?.()
}

function applyBackendPolicies(context: RequestContext): PhaseResult | Promise<PhaseResult> {
  const steps = context.destination?.steps
  if (steps === undefined || steps.length === 0) return undefined
  context.keepOriginal()
  return runSteps(context, steps, () => {})
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
  if (destination.endpoint !== undefined) {
    destination.endpoint.begin(runtime.cap)
    context.endpoint = destination.endpoint
    // A body that was prepared has come already, at the speed of the client.
    const isFirst = context.retries === 0 && call?.prepare === undefined
    context.attemptStartedAt = isFirst ? exchange.startedAt : now()
  }
  context.address = destination.address
  if (context.trace !== undefined) startAttemptSpan(context, destination.address)
  exchange.forward(destination.address, forwardOptions(context))
  return undefined
}

/** The rule's own timeouts beat those of a policy; an explicit 0 of the rule lifts the policy's. */
function forwardOptions({ placement, exchange, destination }: RequestContext) {
  const rule = placement?.rule.resource
  const settings = destination?.settings
  const byPolicy = exchange.facts.get(forwardingFacts.requestTimeoutMs)
  return {
    connectTimeoutMs: settings?.connectTimeoutMs ?? 0,
    race: destination?.race,
    // A policy knows its backend; the rule speaks of whatever it leads to.
    attemptTimeoutMs: settings?.requestTimeoutMs ?? rule?.backendTimeoutMs ?? 0,
    requestTimeoutMs: rule?.requestTimeoutMs ?? (typeof byPolicy === 'number' ? byPolicy : 0),
  }
}

/** Runs steps in order until one answers; `passed` is called after each that does not. */
function runSteps(
  context: RequestContext,
  steps: readonly Step[],
  passed: () => void,
  from = 0,
): PhaseResult | Promise<PhaseResult> {
  for (let at = from; at < steps.length; at++) {
    const verdict = steps[at]?.onRequest?.(context.exchange)
    if (verdict instanceof Promise) {
      return verdict.then((settled) => {
        if (context.over) return undefined
        const answer = answerOf(settled)
        if (answer !== undefined) return answer
        passed()
        return runSteps(context, steps, passed, at + 1)
      })
    }
    const answer = answerOf(verdict)
    if (answer !== undefined) return answer
    passed()
  }
  return undefined
}

function answerOf(verdict: Verdict | undefined): RespondVerdict | undefined {
  return verdict?.kind === 'respond' ? verdict : undefined
}

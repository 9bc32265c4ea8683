/**
 * The way of a request through the gateway, as one list. A phase answers (a verdict), throws a
 * GatewayError, or passes on by returning nothing; the last one forwards. Responses go back through
 * `response.ts`.
 */
import { GatewayError } from '../errors.ts'
import type { RespondVerdict, Verdict } from '../exchange/exchange.ts'
import { forwardingFacts } from '../exchange/forwarding.ts'
import type { Step } from '../policies/define.ts'
import { chosenBackend } from './chosen-backend.ts'
import { pickBackend } from './config/rules.ts'
import { editRequest } from './filters/edit.ts'
import { redirectLocation } from './filters/redirect.ts'
import { forwardedClient } from './forwarded-client.ts'
import { resolvePool } from './inference/resolve-pool.ts'
import { resolveProvider } from './llm/choose-provider.ts'
import { markModelRoute } from './llm/model-route.ts'
import { adaptModelHeaders, prepareModelRequest } from './llm/prepare.ts'
import { limitForwards } from './max-forwards.ts'
import { authenticateMcp } from './mcp/authenticate.ts'
import { findMetadataRoute } from './mcp/metadata-route.ts'
import { isMcpBackend, serveMcp } from './mcp/serve.ts'
import { observeRequest } from './observe.ts'
import type { PhaseContext } from './phase-context.ts'
import { settlePath } from './request-path.ts'
import { findListener, findRoute, placementAhead } from './route.ts'
import { resumeSession } from './session/persistence.ts'
import { startAttemptSpan, startTrace } from './tracing.ts'
import { now } from './upstream/choose.ts'
import { resolveDestination } from './upstream/resolve.ts'
import type { Walk } from './walk.ts'

type PhaseResult = RespondVerdict | undefined
type Phase = (walk: Walk, context: PhaseContext) => PhaseResult | Promise<PhaseResult>

export const requestPhases: readonly Phase[] = [
  // Before everything else: whatever compares paths must see the one that is forwarded.
  resolvePath,
  // Before anything that may ask who the client is, and before any edit of the head.
  identifyClient,
  // The listener comes first: it is what policies of a Gateway hang on, whatever the route.
  selectListener,
  // Before routing, because these policies may change what routes match on, or refuse at once.
  applyPreRouting,
  // After PreRouting, so that a header set there can decide the route.
  selectRoute,
  // One draw per request and before the policies, which may be told where the request will go.
  chooseBackend,
  // Every protection of the route; nothing below may answer a request that these refuse.
  applyPostRouting,
  // After the policies: the filters of the rule are more specific and have the last word.
  applyRuleFilters,
  // Filters of the rule precede answers of policies, so a redirect beats a direct response.
  redirect,
  // Needs no backend, so it comes before one is looked for.
  answerDirectly,
  // Here the gateway stands in for the backend, and so after everything that may refuse the request.
  limitForwards,
  // Only now: an unauthenticated caller must not learn whether a backend exists.
  resolveBackend,
  // Before anything else hears of the request, and while its path is at hand as the client knows it.
  authenticateMcp,
  // Mirrors see what the backend would see, without what is meant for this one backend alone.
  startMirrors,
  // The most specific edits, of the chosen backendRef.
  applyBackendFilters,
  // After every edit that may set the host, and once the destination's name is known.
  rewriteHost,
  // Before credentials are added: a signature covers the body and the path that it makes.
  prepareModel,
  // Last: credentials must not be seen by anything that could send them elsewhere, and a signature
  // covers what all the others have made of the request.
  applyBackendPolicies,
  // Vendors look for credentials in places of their own.
  adaptModelHeaders,
  forward,
]

/** The way of a request that is sent again: the same backend, perhaps another endpoint. */
export const retryPhases: readonly Phase[] = [resolveBackend, applyBackendPolicies, forward]

/** From the choice of a provider to the request that it wants. */
const providerPhases: readonly Phase[] = [
  resolveBackend,
  // Each attempt begins with the head as it was before them.
  applyBackendFilters,
  rewriteHost,
  prepareModel,
]

/** The same to a language model: another provider may want it quite different. */
export const modelPhases: readonly Phase[] = [
  ...providerPhases,
  applyBackendPolicies,
  adaptModelHeaders,
  forward,
]

function identifyClient({ exchange }: Walk, { isTrustedProxy }: PhaseContext): undefined {
  if (isTrustedProxy === undefined) return
  exchange.forwardedFor = forwardedClient(exchange.request, exchange.source, isTrustedProxy)
}

function resolvePath(walk: Walk, { ambiguousPaths }: PhaseContext): undefined {
  if (ambiguousPaths !== 'keep') settlePath(walk, ambiguousPaths)
}

function selectListener(walk: Walk, { config, heads, random }: PhaseContext): undefined {
  findListener(walk, config, heads)
  if (walk.listener === undefined) throw new GatewayError('listener_not_found')
  walk.exchange.place = walk.listener.place
  const { http } = walk.listener.frontend().client
  if (http?.maxBufferBytes !== undefined) walk.exchange.bufferLimit = http.maxBufferBytes
  walk.observers = walk.listener.observers()
  if (walk.observers.isReading) observeRequest(walk)
  if (walk.observers.tracing !== undefined) startTrace(walk, random)
}

function applyPreRouting(walk: Walk, context: PhaseContext): PhaseResult | Promise<PhaseResult> {
  const policies = walk.listener?.preRouting()
  if (policies === undefined) return undefined
  if (policies.closed !== undefined) throw new GatewayError('policy_unenforceable', policies.closed)
  walk.preRouting = policies
  if (policies.steps.length === 0) return undefined
  walk.keepOriginal()
  // Policies judge the request by the route that it takes as it stands.
  markModelRoute(walk, placementAhead(walk, context.config)?.rule, context)
  // The route was found together with the listener, by the head before these steps.
  walk.isRouteKnown = false
  return runSteps(walk, policies.steps, () => {
    walk.preRoutingDone++
  })
}

function selectRoute(walk: Walk, context: PhaseContext): undefined {
  findRoute(walk, context.config, context.heads)
  findMetadataRoute(walk, context)
  if (walk.placement === undefined) throw new GatewayError('route_not_found')
  walk.exchange.place = walk.placement.place
}

function chooseBackend(walk: Walk, { random, sessions }: PhaseContext): undefined {
  const rule = walk.placement?.rule
  if (rule === undefined) return
  const isKept = rule.resource.session !== undefined
  walk.backend = (isKept && resumeSession(walk, rule, sessions)) || pickBackend(rule, random())
}

function applyPostRouting(walk: Walk, context: PhaseContext): PhaseResult | Promise<PhaseResult> {
  const policies = walk.placement?.postRouting()
  if (policies === undefined) return undefined
  if (policies.closed !== undefined) throw new GatewayError('policy_unenforceable', policies.closed)
  walk.postRouting = policies
  if (policies.steps.length === 0) return undefined
  walk.keepOriginal()
  markModelRoute(walk, walk.placement?.rule, context)
  return runSteps(walk, policies.steps, () => {
    walk.postRoutingDone++
  })
}

function applyRuleFilters(walk: Walk): undefined {
  const rule = walk.placement?.rule
  if (rule === undefined) return
  if (rule.unusable !== undefined) throw new GatewayError('rule_unusable', rule.unusable)
  walk.ruleFilters = rule.filters.responseHeaders.length > 0
  if (rule.filters.edits.length === 0) return
  walk.keepOriginal()
  editRequest(walk.exchange.request, rule.filters, walk.prefix)
}

function redirect(walk: Walk): PhaseResult {
  const filter = walk.placement?.rule.filters.redirect
  if (filter === undefined) return undefined
  const { exchange, prefix } = walk
  const location = redirectLocation(filter, exchange.request, exchange.port, prefix)
  if (location === undefined) throw new GatewayError('filter_failed', 'no location to redirect to')
  const headers = [['location', location]] as const
  return { kind: 'respond', status: filter.statusCode, headers, reason: 'DirectResponse' }
}

function answerDirectly(walk: Walk): PhaseResult | Promise<PhaseResult> {
  const answers = walk.postRouting?.answers
  if (answers === undefined || answers.length === 0) return undefined
  return runSteps(walk, answers, () => {})
}

function resolveBackend(walk: Walk, context: PhaseContext): undefined | Promise<PhaseResult> {
  const { backend, placement } = walk
  if (backend === undefined || placement === undefined) throw new GatewayError('no_backends')
  walk.exchange.backend = chosenBackend(backend, context.config)
  if (backend.target.type === 'pool') return resolvePool(walk, context)
  if (isMcpBackend(backend, context)) return undefined
  const models = backend.target.type === 'backend' && context.config.backends.find(backend.name)
  if (models && models.type === 'ai') return resolveProvider(walk, context, models)
  const { request } = walk.exchange
  const options = walk.retries === 0 ? walk.session?.origin : { avoid: walk.destination?.endpoint }
  const found = resolveDestination(context, placement, backend, request, options)
  if (!(found instanceof Promise)) {
    walk.destination = found
    return undefined
  }
  return found.then((destination) => {
    walk.destination = destination
    return undefined
  })
}

function startMirrors(walk: Walk, context: PhaseContext): undefined | Promise<undefined> {
  const { placement } = walk
  if (placement === undefined || placement.rule.mirrors.length === 0) return undefined
  return sendMirrors(walk, context)
}

async function sendMirrors(walk: Walk, context: PhaseContext): Promise<undefined> {
  const { placement, exchange } = walk
  if (placement === undefined) return
  for (const mirror of placement.rule.mirrors) {
    const { numerator, denominator } = mirror.filter
    if (context.random() * denominator >= numerator) continue
    try {
      const found = await resolveDestination(context, placement, mirror, exchange.request)
      if (!walk.over) exchange.mirror(found.address, found.race)
    } catch (error) {
      // A mirror never matters to the request; one that cannot be resolved is not sent.
      if (!(error instanceof GatewayError)) throw error
    }
  }
}

function applyBackendFilters(walk: Walk): undefined {
  const filters = walk.backend?.filters
  if (filters === undefined) return
  walk.backendFilters = filters.responseHeaders.length > 0
  if (filters.edits.length === 0) return
  walk.keepOriginal()
  editRequest(walk.exchange.request, filters, walk.prefix)
}

function rewriteHost(walk: Walk): undefined {
  const { destination, exchange, placement, backend } = walk
  if (destination === undefined) return
  if (placement?.rule.filters.setsHost === true || backend?.filters.setsHost === true) return
  const byDefault = destination.isHostname ? 'Auto' : 'None'
  if ((exchange.facts.get(forwardingFacts.hostRewrite) ?? byDefault) !== 'Auto') return
  walk.keepOriginal()
  exchange.request.authority = destination.authority
}

function prepareModel(walk: Walk, context: PhaseContext): PhaseResult | Promise<PhaseResult> {
  return prepareModelRequest(walk, context, prepareForAnother)
}

/** The chosen provider cannot carry the request: the next one may. */
async function prepareForAnother(walk: Walk, context: PhaseContext): Promise<PhaseResult> {
  for (const phase of providerPhases) {
    const result = await phase(walk, context)
    if (result !== undefined || walk.over) return result
  }
  return undefined
}

function applyBackendPolicies(walk: Walk): PhaseResult | Promise<PhaseResult> {
  const steps = walk.destination?.steps
  if (steps === undefined || steps.length === 0) return undefined
  walk.keepOriginal()
  return runSteps(walk, steps, () => {})
}

function forward(walk: Walk, context: PhaseContext): PhaseResult | Promise<PhaseResult> {
  const { destination, exchange, backend } = walk
  if (destination === undefined) {
    if (backend !== undefined && isMcpBackend(backend, context)) return serveMcp(walk, context)
    throw new GatewayError('no_backends')
  }
  if (destination.endpoint !== undefined) {
    destination.endpoint.begin(context.cap)
    walk.endpoint = destination.endpoint
    // The body of a request to a model has come already, at the speed of the client.
    const isFirst = walk.retries === 0 && walk.model === undefined
    walk.attemptStartedAt = isFirst ? exchange.startedAt : now()
  }
  walk.address = destination.address
  if (walk.trace !== undefined) startAttemptSpan(walk, destination.address)
  exchange.forward(destination.address, forwardOptions(walk))
  return undefined
}

/** The rule's own timeouts beat those of a policy; an explicit 0 of the rule lifts the policy's. */
function forwardOptions({ placement, exchange, destination }: Walk) {
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
  walk: Walk,
  steps: readonly Step[],
  passed: () => void,
  from = 0,
): PhaseResult | Promise<PhaseResult> {
  for (let at = from; at < steps.length; at++) {
    const verdict = steps[at]?.onRequest?.(walk.exchange)
    if (verdict instanceof Promise) {
      return verdict.then((settled) => {
        if (walk.over) return undefined
        const answer = answerOf(settled)
        if (answer !== undefined) return answer
        passed()
        return runSteps(walk, steps, passed, at + 1)
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

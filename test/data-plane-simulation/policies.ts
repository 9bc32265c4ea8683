/** What the policies of a route say about an exchange: a simple interpreter, written apart from the gateway's. */
import { isValid } from './api-keys.ts'
import type { SimulatedRoute } from './configuration.ts'
import type { Exchange } from './exchange.ts'

/** Returns the statuses with which a policy refuses a request whatever happens later; undefined if none does. */
export function refusalsOf(
  exchange: Exchange,
  route: SimulatedRoute,
): readonly number[] | undefined {
  const { keyKind, begunAt } = exchange
  const later = refusalsAfterKeys(exchange, route)
  if (route.keys === undefined) return later
  const isKeyValid = isValid(keyKind, route.keys, begunAt ?? 0, Number.POSITIVE_INFINITY)
  if (isKeyValid === false) return [401]
  // The key may have ceased to be valid before the other policies run.
  return later && isKeyValid === undefined ? [401, ...later] : later
}

function refusalsAfterKeys(
  exchange: Exchange,
  route: SimulatedRoute,
): readonly number[] | undefined {
  const { request, authorization } = exchange
  // In the order in which policies run.
  if (authorization !== undefined) {
    if (route.sentBody !== undefined && request.body.length > route.sentBody) return [413]
    const { refusals } = authorization
    if (refusals !== undefined) return refusals
  }
  const roles = request.fields.flatMap(([name, value]) => (name === 'X-Role' ? [value] : []))
  if (route.isGuarded && roles.join() !== 'reader') return [403]
  // An expression that compares several values with one decides nothing, so the request is refused.
  if (route.refusesWriters && !route.isGuarded && roles.includes('writer')) return [403]
  const refusals = exchange.counting?.refusals
  if (refusals === undefined) return undefined
  // A limit of the proxy comes before the service, and the call of an authorization service may be lost.
  const earlier = route.limit === undefined ? [] : [429]
  return [...earlier, ...(authorization?.isOverGrpc === true ? [403] : []), ...refusals]
}

/** Returns which service has not agreed to a request that an upstream gets; undefined if all have. */
export function problemOfArrival(exchange: Exchange): string | undefined {
  const { authorization, processing, judgements, counting } = exchange
  if (authorization?.isAllowed === false) return 'reaches an upstream without authorization'
  if (counting?.hasAdmitted === false) return 'reaches an upstream without its limit'
  if (judgements.request?.hasPassed === false) return 'reaches a model without its webhook'
  if (processing?.answered.has('requestHeaders') === false) {
    return 'reaches an upstream without its processor'
  }
  return undefined
}

/** Returns the statuses that the gateway may respond with because of a service; undefined if it may not. */
export function statusesByServices(
  { authorization, processing, judgements, arrivals, counting }: Exchange,
  { limit, tokenLimit, keys }: SimulatedRoute,
): readonly number[] {
  const statuses: number[] = []
  // A key may cease to be valid while its request is under way.
  if (keys !== undefined && arrivals.length === 0) statuses.push(401)
  // What a limit has admitted stays admitted, also if another provider is asked.
  if ((limit ?? tokenLimit) !== undefined && arrivals.length === 0) statuses.push(429)
  // The answers of a rate limit service may be lost with its connection.
  if (counting !== undefined && arrivals.length === 0) statuses.push(500)
  // A response of which the processor has not returned all is broken off or replaced.
  // Connections may be lost with calls that the service has not seen, or with its answers.
  if (authorization?.isOverGrpc === true && arrivals.length === 0) statuses.push(403)
  const hasAllItWants =
    processing?.wantsResponse === false &&
    processing.hasRequest &&
    arrivals.at(-1)?.message.isComplete === true
  if (processing?.hasFailed === true && !hasAllItWants) statuses.push(500)
  if (processing?.calls === 0) statuses.push(500)
  // A response that was lost while it was processed cannot be replaced by another one.
  if (processing !== undefined && arrivals.length > 1) statuses.push(500)
  if (processing?.fault?.kind === 'end') statuses.push(500)
  for (const judgement of [judgements.request, judgements.response]) {
    if (judgement === undefined || judgement.mayPass) continue
    statuses.push(judgement.action === 'reject' ? judgement.status : 503)
  }
  return statuses
}

import { type Exchange, type RespondVerdict, refuse } from './exchange.ts'
import { type AllowedNames, allowedText, forwardingExtensions } from './forwarding.ts'

/** Refuses a request whose API key may not use its route. Before the route is known, nothing is refused. */
export function routeRefusal({
  extensions,
  place: { route },
}: Pick<Exchange, 'extensions' | 'place'>): RespondVerdict | undefined {
  if (extensions.size === 0 || route === undefined) return undefined
  const allowed = extensions.get(forwardingExtensions.allowedRoutes) as AllowedNames | undefined
  if (allowed === undefined || allowed.allows(route)) return undefined
  const text = `the API key may not use route ${route}; ${allowedText(allowed)}`
  return refuse(403, 'APIKeyAuth', text, `route ${route} is not in allowedRoutes`)
}

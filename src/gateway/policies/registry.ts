/**
 * All policies. POSITION IS THE ORDER OF EXECUTION for requests; responses pass them in reverse order.
 */

import type { PolicySection } from '../../ground/model/resources.ts'
import { backendA2a } from '../backends/a2a/policy/index.ts'
import { backendAi } from '../backends/ai/policy/index.ts'
import { backendMcp } from '../backends/mcp/policy/index.ts'
import { access } from './access/index.ts'
import { accessLog } from './access-log/index.ts'
import { apiKeyAuthentication } from './api-key-authentication/index.ts'
import { authorization } from './authorization/index.ts'
import { backendAuth } from './backend-simple/auth/index.ts'
import { backendCircuitBreaker } from './backend-simple/circuit-breaker/index.ts'
import { gatewayCertificate } from './backend-simple/gateway-certificate/index.ts'
import { backendHealth } from './backend-simple/health/index.ts'
import { backendHttp } from './backend-simple/http/index.ts'
import { backendSessionAffinity } from './backend-simple/session-affinity/index.ts'
import { backendTcp } from './backend-simple/tcp/index.ts'
import { backendTls } from './backend-simple/tls/index.ts'
import { backendTunnel } from './backend-simple/tunnel/index.ts'
import { basicAuthentication } from './basic-authentication/index.ts'
import { budgets } from './budgets/index.ts'
import { buffer } from './buffer/index.ts'
import { consentPages } from './consent-pages/index.ts'
import { cors } from './cors/index.ts'
import { csrf } from './csrf/index.ts'
import type { PolicyDefinition } from './define.ts'
import { delay } from './delay/index.ts'
import { directResponse } from './direct-response/index.ts'
import { extAuth } from './ext-auth/index.ts'
import { extProc } from './ext-proc/index.ts'
import { frontendConnect } from './frontend-connect/index.ts'
import { frontendForwarded } from './frontend-forwarded/index.ts'
import { frontendHttp } from './frontend-http/index.ts'
import { frontendNetworkAuthorization } from './frontend-network-authorization/index.ts'
import { frontendProxyProtocol } from './frontend-proxy-protocol/index.ts'
import { frontendTcp } from './frontend-tcp/index.ts'
import { frontendTls } from './frontend-tls/index.ts'
import { headerModifiers } from './header-modifiers/index.ts'
import { hostRewrite } from './host-rewrite/index.ts'
import { identity } from './identity/index.ts'
import { jsonGuard } from './json-guard/index.ts'
import { jwtAuthentication } from './jwt-authentication/index.ts'
import { metrics } from './metrics/index.ts'
import { oidc } from './oidc/index.ts'
import { rateLimit } from './rate-limit/index.ts'
import { retry } from './retry/index.ts'
import { timeouts } from './timeouts/index.ts'
import { tracing } from './tracing/index.ts'
import { transformation } from './transformation/index.ts'

const trafficPolicies = [
  // First, so that a preflight needs no credentials and counts for no limit, and a 401 has CORS headers.
  cors,
  // Authentication comes before every policy that may read the identity of the caller.
  jwtAuthentication,
  basicAuthentication,
  apiKeyAuthentication,
  // After the policies that check credentials of programs, so that their requests can pass without a session.
  oidc,
  // After local authentication: a call is expensive, and the service may need the verified claims.
  extAuth,
  // After everything that says who the caller is, and before every policy that may use its values.
  identity,
  // Its rules may use the claims of every authentication above, and the metadata of extAuth.
  authorization,
  // After authorization, so that it decides who may use the pages.
  consentPages,
  // Only decides whether later failures are retried. It is here so that it does not run for refused callers.
  retry,
  // After authorization, so that refused requests are not charged to a limit.
  rateLimit,
  // A processor may inspect or block content, so requests fail if it cannot be enforced.
  extProc,
  // Often removes headers that an upstream trusts (`x-user`); otherwise clients could forge them.
  transformation,
  // After transformation, which may set Origin or Host, and before changes for the backend.
  csrf,
  // After transformation, which may set the body, and after csrf, because a guard may ask a service.
  jsonGuard,
  // After every policy that may refuse the request, so that refusals do not wait.
  delay,
  // After every policy that may refuse the request, so that no memory is used for refused requests.
  buffer,
  // After all policies that decide by the client's original headers.
  headerModifiers,
  // The next two only set options of the forwarding step, so no later policy depends on them.
  hostRewrite,
  timeouts,
  // Last, and after the rule's filters, so that all policies above also apply to direct responses.
  directResponse,
] as const

const frontendPolicies = [
  // Sets socket options of accepted connections.
  frontendTcp,
  // The header precedes everything else. Without it, clients would have the address of the load balancer.
  frontendProxyProtocol,
  // Its rules read the client of the header, and refuse a connection before the handshake.
  frontendNetworkAuthorization,
  // The handshake precedes HTTP. A minimum version or cipher list is a protection.
  frontendTls,
  // Limits of heads and bodies are protections, too.
  frontendHttp,
  // Decides which requests may become tunnels, so it comes with the limits of requests.
  frontendConnect,
  // Says who the client is, and removes what it may have forged, so it fails closed.
  frontendForwarded,
  // The last three only observe requests.
  accessLog,
  metrics,
  tracing,
] as const

const backendPolicies = [
  // In the order in which a connection to a backend is set up.
  backendTcp,
  // TLS to the backend begins inside the connection that the proxy has made.
  backendTunnel,
  // A security policy: without it, credentials and data would be sent in plain text.
  backendTls,
  backendHttp,
  // Credentials are added when the connection is secured. Without them, calls would be unauthenticated.
  backendAuth,
  // Decides by the request as the client and the policies of the route left it.
  backendSessionAffinity,
  // Only judges responses, so that no other policy depends on it.
  backendHealth,
  // Counts what is sent, after everything that may refuse it.
  backendCircuitBreaker,
  // The last three contain guards and authorization.
  backendMcp,
  backendA2a,
  backendAi,
] as const

/** The policies that users can set; the types of policy specs are derived from this list. */
export const registeredPolicies = [
  ...frontendPolicies,
  ...trafficPolicies,
  ...backendPolicies,
] as const

/** Policies that users cannot set: they are compiled from fields of other objects. */
const derivedPolicies: readonly PolicyDefinition[] = [
  // The client certificate for backends whose TLS settings come from a BackendTLSPolicy.
  gatewayCertificate,
  // From GatewayBudgets. After every other policy of requests, so that refused ones are not counted.
  budgets,
]

const positionOfAccess = registeredPolicies.indexOf(authorization) + 1

/** All definitions, including derived ones. */
export const policyRegistry: readonly PolicyDefinition[] = [
  ...registeredPolicies.slice(0, positionOfAccess),
  // From XAccessPolicies. After all policies that say who the caller is, and before limits, so that refused
  // requests are not charged.
  access,
  ...registeredPolicies.slice(positionOfAccess),
  ...derivedPolicies,
]

/** Definitions by name, which is `section.field`. */
export const policiesByName: ReadonlyMap<string, PolicyDefinition> = index(policyRegistry)

/** Returns undefined if no policy has this section and field. */
export function findPolicy(section: PolicySection, field: string): PolicyDefinition | undefined {
  return policiesByName.get(policyName(section, field))
}

/** Returns `section.field`, the name of a policy in messages and in merged sets. */
export function policyName(section: PolicySection, field: string): string {
  return `${section}.${field}`
}

/** Definitions by name. Throws at startup if a name is registered twice. */
function index(definitions: readonly PolicyDefinition[]): ReadonlyMap<string, PolicyDefinition> {
  const found = new Map<string, PolicyDefinition>()
  for (const definition of definitions) {
    const name = policyName(definition.section, definition.field)
    if (found.has(name)) throw new Error(`the policy ${name} is registered twice`)
    found.set(name, definition)
  }
  return found
}

/**
 * Every policy, in the order in which it runs. POSITION IS THE ORDER OF EXECUTION of the request
 * phase; responses pass in reverse.
 */
import { backendAi } from '../backends/ai/policy/index.ts'
import { backendMcp } from '../backends/mcp/policy/index.ts'
import type { PolicySection } from '../model/resources.ts'
import { accessLog } from './access-log/index.ts'
import { apiKeyAuthentication } from './api-key-authentication/index.ts'
import { authorization } from './authorization/index.ts'
import { backendAuth } from './backend-simple/auth/index.ts'
import { gatewayCertificate } from './backend-simple/gateway-certificate/index.ts'
import { backendHttp } from './backend-simple/http/index.ts'
import { backendTcp } from './backend-simple/tcp/index.ts'
import { backendTls } from './backend-simple/tls/index.ts'
import { basicAuthentication } from './basic-authentication/index.ts'
import { cors } from './cors/index.ts'
import { csrf } from './csrf/index.ts'
import type { PolicyDefinition } from './define.ts'
import { directResponse } from './direct-response/index.ts'
import { extAuth } from './ext-auth/index.ts'
import { extProc } from './ext-proc/index.ts'
import { frontendHttp } from './frontend-http/index.ts'
import { frontendTcp } from './frontend-tcp/index.ts'
import { frontendTls } from './frontend-tls/index.ts'
import { headerModifiers } from './header-modifiers/index.ts'
import { hostRewrite } from './host-rewrite/index.ts'
import { jwtAuthentication } from './jwt-authentication/index.ts'
import { rateLimit } from './rate-limit/index.ts'
import { retry } from './retry/index.ts'
import { timeouts } from './timeouts/index.ts'
import { tracing } from './tracing/index.ts'
import { transformation } from './transformation/index.ts'

const trafficPolicies = [
  // First, so that a preflight needs no credential, costs no limit, and a 401 carries CORS headers.
  cors,
  // Credentials before whatever may read who the caller is.
  jwtAuthentication,
  basicAuthentication,
  apiKeyAuthentication,
  // After local credentials: a call to a service is dear, and it may be told the verified claims.
  extAuth,
  // Its rules may use the claims of every authentication above, extAuth's metadata included.
  authorization,
  // Only decides what later failures may do; here so that a refused caller never arms it.
  retry,
  // After authorization: a refused request takes nothing from anybody's limit.
  rateLimit,
  // A processor may inspect or block content, so leaving it out could let something through.
  extProc,
  // Often strips headers that an upstream trusts (`x-user`): without it a client could forge them.
  transformation,
  // After transformation, which may set Origin or Host; before anything that shapes the request out.
  csrf,
  // Plain edits come after every decision that reads the client's own headers.
  headerModifiers,
  // The two that follow only tell the forwarding step something; nothing later reads the request.
  hostRewrite,
  timeouts,
  // Last, and after the rule's filters: everything above holds for answers without a backend too.
  directResponse,
] as const

const frontendPolicies = [
  // Socket options, set when a connection is accepted.
  frontendTcp,
  // The handshake comes before any HTTP; a minimum version or cipher list is a protection.
  frontendTls,
  // Limits of heads and bodies are protections as well.
  frontendHttp,
  // Both observe only.
  accessLog,
  tracing,
] as const

const backendPolicies = [
  // In the order in which a connection to a backend is built up.
  backendTcp,
  // Without it credentials and data would go in clear.
  backendTls,
  backendHttp,
  // Credentials are added once the transport is settled; without them calls would go out as nobody.
  backendAuth,
  // Guards and authorization live inside these two.
  backendMcp,
  backendAi,
] as const

/** With the types of what users may write, from which the types of specs are made. */
export const registeredPolicies = [
  ...frontendPolicies,
  ...trafficPolicies,
  ...backendPolicies,
] as const

/** What nobody writes in a policy: fields of other objects that work as policies. */
const derivedPolicies: readonly PolicyDefinition[] = [
  // What `tls` of a backend presents where a BackendTLSPolicy has settled it.
  gatewayCertificate,
]

/** Every definition, for code that handles them all alike. */
export const policyRegistry: readonly PolicyDefinition[] = [
  ...registeredPolicies,
  ...derivedPolicies,
]

const byName = index(policyRegistry)

/** The definition of a field, or undefined where the registry has none. */
export function findPolicy(section: PolicySection, field: string): PolicyDefinition | undefined {
  return byName.get(policyName(section, field))
}

/** `section.field`: what a policy is called in messages and in merged sets. */
export function policyName(section: PolicySection, field: string): string {
  return `${section}.${field}`
}

/** Definitions by name; a name that is taken twice is a bug of this file and fails at start. */
function index(definitions: readonly PolicyDefinition[]): ReadonlyMap<string, PolicyDefinition> {
  const found = new Map<string, PolicyDefinition>()
  for (const definition of definitions) {
    const name = policyName(definition.section, definition.field)
    if (found.has(name)) throw new Error(`the policy ${name} is registered twice`)
    found.set(name, definition)
  }
  return found
}

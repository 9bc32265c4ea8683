/**
 * Every policy, in the order in which it runs. POSITION IS THE ORDER OF EXECUTION of the request
 * phase; responses pass in reverse. A policy that does not work yet stands here as pending: its
 * schema is accepted, and a pending `security` policy makes what it covers answer 500, because a
 * protection that is not enforced must never let traffic through.
 */
import type { PolicySection } from '../model/resources.ts'
import type { PolicyDefinition } from './define.ts'
import { pendingPolicy } from './define.ts'
import { directResponse } from './direct-response/index.ts'
import { headerModifiers } from './header-modifiers/index.ts'
import { hostRewrite } from './host-rewrite/index.ts'
import { timeouts } from './timeouts/index.ts'

const trafficPolicies: readonly PolicyDefinition[] = [
  // First, so that a preflight needs no credential, costs no limit, and a 401 carries CORS headers.
  pendingPolicy('traffic', 'cors', { security: false, preRouting: true }),
  // Credentials before whatever may read who the caller is.
  pendingPolicy('traffic', 'jwtAuthentication', { security: true, preRouting: true }),
  pendingPolicy('traffic', 'basicAuthentication', { security: true, preRouting: true }),
  pendingPolicy('traffic', 'apiKeyAuthentication', { security: true, preRouting: true }),
  // After local credentials: a call to a service is dear, and it may be told the verified claims.
  pendingPolicy('traffic', 'extAuth', { security: true, preRouting: true }),
  // Its rules may use the claims of every authentication above, extAuth's metadata included.
  {
    ...pendingPolicy('traffic', 'authorization', { security: true, preRouting: true }),
    merge: 'append',
  },
  // Only decides what later failures may do; here so that a refused caller never arms it.
  pendingPolicy('traffic', 'retry', { security: false }),
  // After authorization: a refused request takes nothing from anybody's limit.
  pendingPolicy('traffic', 'rateLimit', { security: true }),
  // A processor may inspect or block content, so leaving it out could let something through.
  pendingPolicy('traffic', 'extProc', { security: true, preRouting: true }),
  // Often strips headers that an upstream trusts (`x-user`): without it a client could forge them.
  pendingPolicy('traffic', 'transformation', { security: true, preRouting: true }),
  // After transformation, which may set Origin or Host; before anything that shapes the request out.
  pendingPolicy('traffic', 'csrf', { security: true }),
  // Plain edits come after every decision that reads the client's own headers.
  headerModifiers,
  // The two that follow only tell the forwarding step something; nothing later reads the request.
  hostRewrite,
  timeouts,
  // Last, and after the rule's filters: everything above holds for answers without a backend too.
  directResponse,
]

const frontendPolicies: readonly PolicyDefinition[] = [
  // Socket options, set when a connection is accepted.
  pendingPolicy('frontend', 'tcp', { security: false }),
  // The handshake comes before any HTTP; a minimum version or cipher list is a protection.
  pendingPolicy('frontend', 'tls', { security: true }),
  // Limits of heads and bodies are protections as well.
  pendingPolicy('frontend', 'http', { security: true }),
  // Both observe only.
  pendingPolicy('frontend', 'accessLog', { security: false }),
  pendingPolicy('frontend', 'tracing', { security: false }),
]

const backendPolicies: readonly PolicyDefinition[] = [
  // In the order in which a connection to a backend is built up.
  pendingPolicy('backend', 'tcp', { security: false }),
  // Without it credentials and data would go in clear.
  pendingPolicy('backend', 'tls', { security: true }),
  pendingPolicy('backend', 'http', { security: false }),
  // Credentials are added once the transport is settled; without them calls would go out as nobody.
  pendingPolicy('backend', 'auth', { security: true }),
  // Guards and authorization live inside these two.
  pendingPolicy('backend', 'ai', { security: true }),
  pendingPolicy('backend', 'mcp', { security: true }),
]

export const policyRegistry: readonly PolicyDefinition[] = [
  ...frontendPolicies,
  ...trafficPolicies,
  ...backendPolicies,
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

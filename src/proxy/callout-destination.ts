import type { CalloutTarget, HostTarget } from '../exchange/exchange.ts'
import { backendLevels } from '../policies/merge.ts'
import { httpAccess, streamAccess } from './config/backend-access.ts'
import { nameTarget } from './config/rules.ts'
import type { PhaseContext } from './phases.ts'
import type { Destination } from './upstream/destination.ts'
import { resolveDestination, resolveDynamic } from './upstream/resolve.ts'

/**
 * Where a call of a policy goes: an endpoint of the backend, with what policies settle for
 * connections to it. Rejects with a GatewayError where the backend cannot be reached.
 */
export async function resolveCallout(
  context: PhaseContext,
  target: CalloutTarget | HostTarget,
): Promise<Destination> {
  if (target.type === 'host') return resolveHost(context, target)
  const { policies } = context.config
  const kind = target.type === 'service' ? 'Service' : 'GatewayBackend'
  const backend = { kind, namespace: target.namespace, name: target.name }
  // No route leads there, so only what targets the backend itself holds.
  const place: Parameters<typeof resolveDestination>[1] = {
    backend: (_named, part) => {
      const levels = backendLevels([], { backend, sections: part().sections })
      return streamAccess(policies.merge('backend', 'PostRouting', levels))
    },
  }
  const nobody = { authority: '', scheme: 'http' as const }
  return resolveDestination(context, place, nameTarget(target), nobody)
}

/** As a dynamic forward proxy would reach it, with what that may not reach. */
function resolveHost(
  context: PhaseContext,
  { host, port, isSecure }: HostTarget,
): Promise<Destination> {
  const policies = { steps: [], answers: [], connection: {}, client: {} }
  const access = httpAccess(policies, { needsTls: isSecure, tlsByDefault: isSecure })
  const asked = { authority: `${host}:${port}`, scheme: 'http' as const }
  return resolveDynamic(context, access, asked, undefined)
}

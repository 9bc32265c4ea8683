import type { RouteTypes } from '../../backends/ai/request/route-type.ts'
import { forwardingFacts } from '../../exchange/forwarding.ts'
import type { CompiledRule } from '../config/rules.ts'
import type { RequestContext } from '../request-context.ts'
import { placementAhead } from '../route.ts'
import type { GatewayRuntime } from '../runtime.ts'
import { routeTypesOf } from './model-call.ts'

/** Does the rule lead to providers of language models, with any of its backends? */
export function leadsToModels(
  { backends }: CompiledRule,
  { config }: Pick<GatewayRuntime, 'config'>,
): boolean {
  return backends.some(
    ({ target, name }) => target.type === 'backend' && config.backends.find(name)?.type === 'ai',
  )
}

/** Tells policies of the route whether clients may send keys as SDKs of model vendors do. */
export function markModelRoute(
  { exchange: { facts } }: RequestContext,
  rule: CompiledRule | undefined,
  runtime: GatewayRuntime,
): void {
  if (rule !== undefined && leadsToModels(rule, runtime)) {
    facts.set(forwardingFacts.isModelRoute, true)
  } else if (facts.size > 0) facts.delete(forwardingFacts.isModelRoute)
}

/**
 * Route types of a request that no provider was chosen for, such as one that a policy has refused.
 * Undefined if it does not lead to model providers.
 */
export function routeTypesAhead(
  context: RequestContext,
  { config }: GatewayRuntime,
): RouteTypes | undefined {
  const placement = context.placement ?? placementAhead(context, config)
  const targets =
    context.backend === undefined ? (placement?.rule.backends ?? []) : [context.backend]
  for (const { target, name } of targets) {
    const found = target.type === 'backend' ? config.backends.find(name) : undefined
    if (found?.type !== 'ai') continue
    const provider = found.groups[0]?.[0]
    const access = provider && placement?.backend(provider.named, () => provider.part)
    return routeTypesOf(access)
  }
  return undefined
}

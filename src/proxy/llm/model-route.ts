import { forwardingFacts } from '../../exchange/forwarding.ts'
import type { CompiledRule } from '../config/rules.ts'
import type { PhaseContext } from '../phase-context.ts'
import type { Walk } from '../walk.ts'

/** Does the rule lead to providers of language models, with any of its backends? */
export function leadsToModels(
  { backends }: CompiledRule,
  { config }: Pick<PhaseContext, 'config'>,
): boolean {
  return backends.some(
    ({ target, name }) => target.type === 'backend' && config.backends.find(name)?.type === 'ai',
  )
}

/** Tells policies of the route whether clients may send keys as SDKs of model vendors do. */
export function markModelRoute(
  { exchange: { facts } }: Walk,
  rule: CompiledRule | undefined,
  context: PhaseContext,
): void {
  if (rule !== undefined && leadsToModels(rule, context)) {
    facts.set(forwardingFacts.isModelRoute, true)
  } else if (facts.size > 0) facts.delete(forwardingFacts.isModelRoute)
}

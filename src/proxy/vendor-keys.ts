/** Routes whose clients may send keys as the SDKs of model vendors do. */
import { forwardingFacts } from '../exchange/forwarding.ts'
import type { CompiledRule } from './config/rules.ts'
import type { BackendKinds } from './request/backend-kind.ts'
import type { RequestContext } from './request/request-context.ts'

/** Does the rule lead to such a backend, with any of its references? */
export function takesVendorKeys({ backends }: CompiledRule, kinds: BackendKinds): boolean {
  return backends.some((backend) => kinds.of(backend)?.takesVendorKeys === true)
}

/** Tells policies of the route whether to look for such keys. */
export function markVendorKeys(
  { exchange: { facts } }: RequestContext,
  rule: CompiledRule | undefined,
  kinds: BackendKinds,
): void {
  if (rule !== undefined && takesVendorKeys(rule, kinds)) {
    facts.set(forwardingFacts.isModelRoute, true)
  } else if (facts.size > 0) facts.delete(forwardingFacts.isModelRoute)
}

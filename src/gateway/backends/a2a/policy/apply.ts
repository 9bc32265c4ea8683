/** Applies `backend.a2a` policies. */
import { AuthorizationRules } from '../../../policies/authorization/rules.ts'
import type { PolicyApply, Step } from '../../../policies/define.ts'
import { CardVerifier } from '../protocol/signatures.ts'
import { type BackendA2aConfig, shape } from './config.ts'

/** The step of a `backend.a2a` policy, which A2A backends find with `a2aStepOf`. */
class A2aStep implements Step {
  readonly a2a: AuthorizationRules | undefined
  /** Undefined if signatures are not checked. */
  readonly verifier: CardVerifier | undefined

  constructor({ authorization, cardKeys }: BackendA2aConfig) {
    this.a2a = authorization && new AuthorizationRules([authorization])
    this.verifier = cardKeys && new CardVerifier(cardKeys)
  }
}

const apply: PolicyApply<BackendA2aConfig> = {
  shape,
  bind: (config) => new A2aStep(config),
}

export default apply

/** Returns the step of the `backend.a2a` policy, if there is one. */
export function a2aStepOf({ steps }: { readonly steps: readonly Step[] }): A2aStep | undefined {
  return steps.find((step): step is A2aStep => step instanceof A2aStep)
}

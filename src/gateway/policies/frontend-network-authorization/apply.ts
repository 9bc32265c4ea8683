import type { Exchange } from '../../../ground/exchange/exchange.ts'
import type { ConnectionEnds } from '../../../ground/exchange/peer.ts'
import { type AuthorizationConfig, AuthorizationRules, shape } from '../authorization/rules.ts'
import type { PolicyApply } from '../define.ts'

const apply: PolicyApply<readonly AuthorizationConfig[]> = {
  shape,
  bind(configs) {
    const rules = new AuthorizationRules(configs)
    const refusal = (ends: ConnectionEnds): string | undefined => {
      try {
        // Expressions of this policy read only the ends: the control plane refuses others.
        return rules.refusal(ends as Exchange)
      } catch (error) {
        return `the rules failed: ${String(error)}`
      }
    }
    return { client: { refusal } }
  },
}

export default apply

import { type Exchange, next, refuse, type Verdict } from '../../../ground/exchange/exchange.ts'
import { bufferBodies } from '../../variables/index.ts'
import type { PolicyApply } from '../define.ts'
import { type AuthorizationConfig, AuthorizationRules, shape } from './rules.ts'

const apply: PolicyApply<readonly AuthorizationConfig[]> = {
  shape,
  bind(configs) {
    const rules = new AuthorizationRules(configs)
    const judge = (exchange: Exchange): Verdict => {
      const detail = rules.refusal(exchange)
      if (detail === undefined) return next
      // The body does not name the rule, since that would help an attacker.
      return refuse(403, 'Authorization', 'authorization failed', detail)
    }
    return {
      onRequest: (exchange) => {
        const pending = bufferBodies(exchange, rules)
        return pending === undefined ? judge(exchange) : pending.then(() => judge(exchange))
      },
    }
  },
}

export default apply

import { type Exchange, next, refuse, type Verdict } from '../../exchange/exchange.ts'
import { bufferBodies } from '../../variables/index.ts'
import type { PolicyApply } from '../define.ts'
import { type AuthorizationConfig, AuthorizationRules, shape } from './rules.ts'

/** Does not name the rule that refused the request, since that would help an attacker. */
const refused = refuse(403, 'Authorization', 'authorization failed')

const apply: PolicyApply<readonly AuthorizationConfig[]> = {
  shape,
  bind(configs) {
    const rules = new AuthorizationRules(configs)
    const judge = (exchange: Exchange): Verdict => (rules.allows(exchange) ? next : refused)
    return {
      onRequest: (exchange) => {
        const pending = bufferBodies(exchange, rules)
        return pending === undefined ? judge(exchange) : pending.then(() => judge(exchange))
      },
    }
  },
}

export default apply

import { type Exchange, next, type RespondVerdict, type Verdict } from '../../exchange/exchange.ts'
import { bufferBodies } from '../../variables/index.ts'
import type { PolicyApply } from '../define.ts'
import { type AuthorizationConfig, shape } from './config.ts'
import { AuthorizationRules } from './rules.ts'

/** Does not say which rule it was: that would tell a caller what to try next. */
const refused: RespondVerdict = {
  kind: 'respond',
  status: 403,
  body: 'authorization failed',
  reason: 'Authorization',
  refusal: true,
}

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

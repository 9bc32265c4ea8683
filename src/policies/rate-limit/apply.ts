import { type Exchange, next, type RespondVerdict, type Verdict } from '../../exchange/exchange.ts'
import { leaveTokenLimits, type TokenLimits } from '../../exchange/rate-limits.ts'
import { bufferBodies } from '../../variables/index.ts'
import type { PolicyApply } from '../define.ts'
import { type RateLimitConfig, shape } from './config.ts'
import { type LimitFigures, tell } from './figures.ts'
import { GlobalLimits, type Permission, setAll } from './global.ts'
import { LocalLimits } from './local.ts'
import { AllTokenLimits } from './tokens.ts'

/** Only one such policy holds for a request, so one key for each is enough. */
const figuresFact = 'rateLimit.figures'
const permissionFact = 'rateLimit.permission'

const apply: PolicyApply<RateLimitConfig> = {
  shape,
  bind({ local, global }, callouts, _secrets, host) {
    const own = new LocalLimits(local, host)
    const shared = global && new GlobalLimits(global, callouts)
    const tokens = tokenLimits(own, shared)
    const isAsked = shared?.counts('requests') === true
    return {
      onRequest(exchange) {
        const admission = own.admit()
        if (admission !== undefined && 'kind' in admission) return admission
        if (admission !== undefined) exchange.facts.set(figuresFact, admission)
        if (tokens !== undefined) leaveTokenLimits(exchange, tokens)
        return isAsked && shared !== undefined ? askShared(shared, exchange) : next
      },
      onResponse(exchange) {
        const { facts, response } = exchange
        const permission = facts.get(permissionFact) as Permission | undefined
        const figures = (facts.get(figuresFact) as LimitFigures | undefined) ?? permission?.figures
        if (figures !== undefined) tell(exchange, figures)
        if (permission !== undefined && response !== undefined) {
          setAll(response.headers, permission.forResponse)
        }
      },
    }
  },
}

export default apply

function tokenLimits(own: LocalLimits, shared: GlobalLimits | undefined): TokenLimits | undefined {
  if (shared?.counts('tokens') === true) return new AllTokenLimits(own, shared)
  return own.hasTokens ? own : undefined
}

async function askShared(limits: GlobalLimits, exchange: Exchange): Promise<Verdict> {
  await bufferBodies(exchange, limits)
  const answer = await limits.ask(exchange, 'requests', 1)
  if (answer === undefined) return next
  if (isRefusal(answer)) return answer
  setAll(exchange.request.headers, answer.forRequest)
  exchange.facts.set(permissionFact, answer)
  return next
}

function isRefusal(answer: Permission | RespondVerdict): answer is RespondVerdict {
  return 'kind' in answer
}

import { next } from '../../exchange/exchange.ts'
import { leaveTokenLimits } from '../../exchange/rate-limits.ts'
import type { PolicyApply } from '../define.ts'
import type { RateLimitConfig } from './config.ts'
import { type LimitFigures, tell } from './figures.ts'
import { LocalLimits } from './local.ts'

/** Only one such policy holds for a request, so one key is enough. */
const figuresFact = 'rateLimit.figures'

const apply: PolicyApply<RateLimitConfig> = {
  bind({ local }, _callouts, _secrets, host) {
    const limits = new LocalLimits(local, host)
    return {
      onRequest(exchange) {
        const admission = limits.admit()
        if (admission !== undefined && 'kind' in admission) return admission
        if (admission !== undefined) exchange.facts.set(figuresFact, admission)
        if (limits.hasTokens) leaveTokenLimits(exchange, limits)
        return next
      },
      onResponse(exchange) {
        const figures = exchange.facts.get(figuresFact) as LimitFigures | undefined
        if (figures !== undefined) tell(exchange, figures)
      },
    }
  },
}

export default apply

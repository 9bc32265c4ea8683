import type { Infer } from '../../../ground/base/shape.ts'
import {
  type Exchange,
  next,
  type RespondVerdict,
  type Verdict,
} from '../../../ground/exchange/exchange.ts'
import { storeTokenLimits, type TokenLimits } from '../../../ground/exchange/rate-limits.ts'
import { bufferBodies } from '../../variables/index.ts'
import type { PolicyApply, Step } from '../define.ts'
import { shape } from './config.ts'
import { GlobalLimits, type Permission, setAll } from './global.ts'
import { LocalLimits } from './local.ts'
import { type RateLimitStatus, writeStatus } from './status.ts'
import { AllTokenLimits } from './tokens.ts'

/** Keys in `extensions`. They can be constant, because only one rate limit policy applies to a request. */
const statusExtension = 'rateLimit.status'
const permissionExtension = 'rateLimit.permission'

const apply: PolicyApply<Infer<typeof shape>> = {
  shape,
  bind({ local, global }, callouts, _secrets, host) {
    const own = new LocalLimits(local, host)
    const shared = global && new GlobalLimits(global, callouts)
    const tokens = tokenLimits(own, shared)
    const isAsked = shared?.counts('requests') === true
    const admit = (exchange: Exchange): Verdict | Promise<Verdict> => {
      const admission = own.admit(exchange)
      if (admission !== undefined && 'kind' in admission) return admission
      if (admission !== undefined) exchange.extensions.set(statusExtension, admission)
      if (stored !== undefined) storeTokenLimits(exchange, stored)
      return isAsked && shared !== undefined ? askShared(shared, exchange) : next
    }
    const readAndAdmit = async (exchange: Exchange): Promise<Verdict> => {
      await bufferBodies(exchange, own)
      return admit(exchange)
    }
    const step: Step = {
      onRequest: (exchange) => (own.request ? readAndAdmit(exchange) : admit(exchange)),
      onResponse(exchange) {
        const { extensions, response } = exchange
        const permission = extensions.get(permissionExtension) as Permission | undefined
        const status =
          (extensions.get(statusExtension) as RateLimitStatus | undefined) ?? permission?.status
        if (status !== undefined) writeStatus(exchange, status)
        if (permission !== undefined && response !== undefined) {
          setAll(response.headers, permission.forResponse)
        }
      },
    }
    const stored = tokens && { limits: tokens, step }
    return step
  },
}

export default apply

function tokenLimits(own: LocalLimits, shared: GlobalLimits | undefined): TokenLimits | undefined {
  if (shared?.counts('tokens') === true) return new AllTokenLimits(own, shared)
  return own.hasTokens ? own : undefined
}

async function askShared(limits: GlobalLimits, exchange: Exchange): Promise<Verdict> {
  await bufferBodies(exchange, limits)
  const decision = await limits.ask(exchange, 'requests')
  if (decision === undefined) return next
  if (isRefusal(decision)) return decision
  setAll(exchange.request.headers, decision.forRequest)
  exchange.extensions.set(permissionExtension, decision)
  return next
}

function isRefusal(decision: Permission | RespondVerdict): decision is RespondVerdict {
  return 'kind' in decision
}

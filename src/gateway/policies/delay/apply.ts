import { CelDuration, type CelResult } from '../../../engines/cel/index.ts'
import { parseDurationMs } from '../../../ground/base/duration.ts'
import { type Infer, record, text } from '../../../ground/base/shape.ts'
import { onExchangeEnd } from '../../../ground/exchange/cleanup.ts'
import { type Exchange, next, type Verdict } from '../../../ground/exchange/exchange.ts'
import { Expression } from '../../variables/index.ts'
import type { PolicyApply } from '../define.ts'

/** The compiled form that proxies receive. `duration` may be an expression. */
const shape = record({ duration: text })

/** Maximum delay in milliseconds. */
const longestMs = 3_600_000

const apply: PolicyApply<Infer<typeof shape>> = {
  shape,
  bind({ duration }) {
    const fixedMs = parseDurationMs(duration)
    const expression = fixedMs === undefined ? new Expression(duration) : undefined
    return {
      onRequest(exchange) {
        const ms = fixedMs ?? millisecondsOf(expression?.evaluate(exchange))
        return ms > 0 ? wait(exchange, Math.min(ms, longestMs)) : next
      },
    }
  },
}

/** Returns 0 if the result is neither a duration nor a number. */
function millisecondsOf(result: CelResult | undefined): number {
  if (result instanceof CelDuration) return Number(result.nanoseconds) / 1e6
  return typeof result === 'number' || typeof result === 'bigint' ? Number(result) : 0
}

/** Resolves after the time, or once the exchange is over, because its client has left. */
function wait(exchange: Exchange, ms: number): Promise<Verdict> {
  return new Promise((resolve) => {
    const end = () => resolve(next)
    const timer = setTimeout(end, ms)
    onExchangeEnd(exchange, () => {
      clearTimeout(timer)
      end()
    })
  })
}

export default apply

import {
  count,
  type Infer,
  integer,
  optional,
  record,
  text,
} from '../../../../ground/base/shape.ts'
import type { Exchange } from '../../../../ground/exchange/exchange.ts'
import { milliseconds } from '../../../../ground/model/shapes.ts'
import { Expression } from '../../../variables/index.ts'
import type { PolicyApply } from '../../define.ts'

/** The compiled form that proxies receive. Its version is `configVersion` of the definition. */
const shape = record({
  unhealthyCondition: optional(text),
  eviction: optional(
    record({
      durationMs: milliseconds,
      restoreHealth: optional(count),
      consecutiveFailures: optional(count),
      healthThreshold: optional(count),
    }),
  ),
  panicPercent: optional(integer(0, 100)),
  slowStartMs: optional(milliseconds),
})

const apply: PolicyApply<Infer<typeof shape>> = {
  shape,
  bind({ unhealthyCondition, ...rules }) {
    const condition =
      unhealthyCondition === undefined ? undefined : new Expression(unhealthyCondition)
    return {
      connection: {
        health: {
          ...(condition && {
            isUnhealthy: (exchange) => condition.evaluate(exchange as Exchange) === true,
          }),
          ...rules,
        },
      },
    }
  },
}

export default apply

import { hash } from 'node:crypto'
import {
  choice,
  count,
  flag,
  type Infer,
  integer,
  list,
  map,
  optional,
  port,
  record,
  text,
  union,
} from '../../../../ground/base/shape.ts'
import type { HealthProbe } from '../../../../ground/exchange/connection.ts'
import type { Exchange } from '../../../../ground/exchange/exchange.ts'
import { milliseconds } from '../../../../ground/model/shapes.ts'
import { Expression } from '../../../variables/index.ts'
import type { PolicyApply } from '../../define.ts'

const active = record({
  probe: union<'type', HealthProbe>('type', {
    http: record({
      type: choice('http'),
      method: text,
      path: text,
      hostname: optional(text),
      statuses: list(count),
      headers: map(text),
    }),
    grpc: record({ type: choice('grpc'), service: text }),
    tcp: record({ type: choice('tcp') }),
  }),
  intervalMs: milliseconds,
  timeoutMs: milliseconds,
  healthyThreshold: count,
  unhealthyThreshold: count,
  port: optional(port),
  startsUnhealthy: optional(flag),
})

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
  active: optional(active),
})

const apply: PolicyApply<Infer<typeof shape>> = {
  shape,
  bind({ unhealthyCondition, active: checks, ...rules }) {
    const condition =
      unhealthyCondition === undefined ? undefined : new Expression(unhealthyCondition)
    return {
      connection: {
        health: {
          ...(condition && {
            isUnhealthy: (exchange) => condition.evaluate(exchange as Exchange) === true,
          }),
          ...rules,
          ...(checks && {
            active: { ...checks, identity: digestOf(checks), results: new WeakMap() },
          }),
        },
      },
    }
  },
}

export default apply

const digestOf = (config: object): string => hash('sha256', JSON.stringify(config), 'base64url')

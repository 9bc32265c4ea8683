import type { AccessLogRules } from '../../exchange/observe.ts'
import { BoundAttributes, Expression, observedParts } from '../../variables/index.ts'
import type { PolicyApply } from '../define.ts'
import { type AccessLogConfig, shape } from './config.ts'

const apply: PolicyApply<AccessLogConfig> = {
  shape,
  bind({ filter, attributes }) {
    const condition = filter === undefined ? undefined : new Expression(filter)
    const changes = attributes && new BoundAttributes(attributes)
    const expressions = [
      ...(condition === undefined ? [] : [condition]),
      ...(changes?.expressions ?? []),
    ]
    const accessLog: AccessLogRules = {
      parts: observedParts(expressions),
      accepts: (exchange) => condition === undefined || condition.evaluate(exchange) === true,
      changes,
    }
    return { accessLog }
  },
}

export default apply

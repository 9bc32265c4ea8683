import { list, optional, record, type Shape, text } from '../../base/shape.ts'
import type { AccessLogRules } from '../../exchange/observe.ts'
import { namedExpression } from '../../model/shapes.ts'
import { BoundAttributes, Expression, observedParts } from '../../variables/index.ts'
import type { PolicyApply } from '../define.ts'

/** Version 1: what the user wrote. */
export interface AccessLogConfig {
  /** A line is written where it is true; always where absent. */
  readonly filter?: string
  readonly attributes?: {
    readonly remove?: readonly string[]
    readonly add?: readonly { readonly name: string; readonly expression: string }[]
  }
}

const shape: Shape<AccessLogConfig> = record({
  filter: optional(text),
  attributes: optional(
    record<NonNullable<AccessLogConfig['attributes']>>({
      remove: optional(list(text)),
      add: optional(list(namedExpression)),
    }),
  ),
})

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

import { type Infer, optional, record, text } from '../../../ground/base/shape.ts'
import { attributeChanges } from '../../../ground/model/shapes.ts'
import { BoundAttributes, Expression, observedParts } from '../../variables/index.ts'
import type { PolicyApply } from '../define.ts'

/** The compiled form that proxies receive: the fields as the user wrote them. */
const shape = record({
  /** A log entry is written only if this expression is true. If omitted, all are written. */
  filter: optional(text),
  attributes: optional(attributeChanges),
})

const apply: PolicyApply<Infer<typeof shape>> = {
  shape,
  bind({ filter, attributes }) {
    const condition = filter === undefined ? undefined : new Expression(filter)
    const changes = attributes && new BoundAttributes(attributes)
    const expressions = [...(condition ? [condition] : []), ...(changes?.expressions ?? [])]
    return {
      accessLog: {
        parts: observedParts(expressions),
        accepts: (exchange) => condition === undefined || condition.evaluate(exchange) === true,
        changes,
      },
    }
  },
}

export default apply

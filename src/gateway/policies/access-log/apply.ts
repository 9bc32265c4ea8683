import { choice, type Infer, optional, record, text } from '../../../ground/base/shape.ts'
import { attributeChanges, directTarget } from '../../../ground/model/shapes.ts'
import { BoundAttributes, Condition, observedParts } from '../../variables/index.ts'
import type { PolicyApply } from '../define.ts'

const selection = {
  /** A request gets an entry only if this expression is true for it. If omitted, every request gets one. */
  filter: optional(text),
  attributes: optional(attributeChanges),
}

/** The compiled form that proxies receive. */
const shape = record({
  ...selection,
  /** The collector that gets entries too. If its filter or attributes are omitted, those of the log apply. */
  otlp: optional(
    record({
      ...selection,
      target: directTarget,
      protocol: choice('HTTP', 'GRPC'),
      path: optional(text),
    }),
  ),
})

const apply: PolicyApply<Infer<typeof shape>> = {
  shape,
  bind({ otlp, ...log }) {
    const own = bindSelection(log)
    const sent = otlp && bindSelection({ ...log, ...otlp })
    return {
      accessLog: {
        parts: observedParts([...own.expressions, ...(sent?.expressions ?? [])]),
        accepts: own.accepts,
        changes: own.changes,
        export: otlp && sent && { ...otlp, ...sent, resources: [] },
      },
    }
  },
}

function bindSelection({ filter, attributes }: Infer<typeof shape>) {
  const condition = new Condition(filter)
  const changes = attributes && new BoundAttributes(attributes)
  return {
    expressions: [...condition.expressions, ...(changes?.expressions ?? [])],
    accepts: condition.holds.bind(condition),
    changes,
  }
}

export default apply

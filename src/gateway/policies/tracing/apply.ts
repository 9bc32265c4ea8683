import type { CelResult } from '../../../engines/cel/index.ts'
import { choice, type Infer, list, optional, record, text } from '../../../ground/base/shape.ts'
import type { Exchange } from '../../../ground/exchange/exchange.ts'
import { attributeChanges, directTarget, namedExpression } from '../../../ground/model/shapes.ts'
import { BoundAttributes, Condition, Expression, observedParts } from '../../variables/index.ts'
import type { PolicyApply } from '../define.ts'

/** The compiled form that proxies receive. Its version is `configVersion` of the definition. */
const shape = record({
  target: directTarget,
  protocol: choice('HTTP', 'GRPC'),
  path: optional(text),
  attributes: optional(attributeChanges),
  /** Spans of a request are sent only if this expression is true. If omitted, all are sent. */
  filter: optional(text),
  resources: list(namedExpression),
  /** Expression for the fraction of requests without a trace that start one; none if omitted. */
  randomSampling: optional(text),
  /** Expression for the fraction of requests with a trace that get a span; all if omitted. */
  clientSampling: optional(text),
})

const apply: PolicyApply<Infer<typeof shape>> = {
  shape,
  bind({ target, protocol, path, attributes, filter, resources, randomSampling, clientSampling }) {
    const kept = new Condition(filter)
    const changes = attributes && new BoundAttributes(attributes)
    const random = share(randomSampling, 0)
    const client = share(clientSampling, 1)
    return {
      tracing: {
        target,
        protocol,
        path,
        // Resource attributes describe the proxy, so they are evaluated once, without a request.
        resources: new BoundAttributes({ add: resources }).added(),
        parts: observedParts([...kept.expressions, ...(changes?.expressions ?? [])]),
        accepts: (exchange) => kept.holds(exchange),
        share: (exchange, hasTrace) => (hasTrace ? client : random)(exchange),
        changes,
      },
    }
  },
}

/** Makes a function that returns the probability, from 0 to 1, that a request gets a span. */
function share(source: string | undefined, byDefault: number): (exchange: Exchange) => number {
  if (source === undefined) return () => byDefault
  const expression = new Expression(source)
  return (exchange) => toShare(expression.evaluate(exchange))
}

/** Converts a bool or a number from 0 to 1 to a sampling ratio. The ratio of any other result is 0. */
function toShare(result: CelResult): number {
  if (typeof result === 'boolean') return result ? 1 : 0
  if (typeof result !== 'number' && typeof result !== 'bigint') return 0
  const number = Number(result)
  return number > 0 ? Math.min(number, 1) : 0
}

export default apply

import { choice, list, optional, record, type Shape, text } from '../../base/shape.ts'
import type { CelResult } from '../../cel/index.ts'
import type { Exchange } from '../../exchange/exchange.ts'
import type { TracingRules } from '../../exchange/observe.ts'
import type { DirectTarget } from '../../model/resources.ts'
import { directTarget, namedExpression } from '../../model/shapes.ts'
import {
  type AttributeConfig,
  BoundAttributes,
  Expression,
  observedParts,
} from '../../variables/index.ts'
import type { PolicyApply } from '../define.ts'

/** Version 1. */
export interface TracingConfig {
  readonly target: DirectTarget
  readonly protocol: 'HTTP' | 'GRPC'
  readonly attributes?: AttributeConfig
  readonly resources: readonly { readonly name: string; readonly expression: string }[]
  /** Of requests without a trace; none where absent. */
  readonly randomSampling?: string
  /** Of requests with one; all where absent. */
  readonly clientSampling?: string
}

const shape: Shape<TracingConfig> = record({
  target: directTarget,
  protocol: choice('HTTP', 'GRPC'),
  attributes: optional(
    record<AttributeConfig>({
      remove: optional(list(text)),
      add: optional(list(namedExpression)),
    }),
  ),
  resources: list(namedExpression),
  randomSampling: optional(text),
  clientSampling: optional(text),
})

const apply: PolicyApply<TracingConfig> = {
  shape,
  bind({ target, protocol, attributes, resources, randomSampling, clientSampling }) {
    const changes = attributes && new BoundAttributes(attributes)
    const random = share(randomSampling, 0)
    const client = share(clientSampling, 1)
    const tracing: TracingRules = {
      target,
      protocol,
      // What describes the proxy is the same for every request, so it sees none.
      resources: new BoundAttributes({ add: resources }).alone(),
      parts: observedParts(changes?.expressions ?? []),
      share: (exchange, hasTrace) => (hasTrace ? client : random)(exchange),
      changes,
    }
    return { tracing }
  },
}

/** The part of requests that get a span, 0 to 1. */
function share(source: string | undefined, byDefault: number): (exchange: Exchange) => number {
  if (source === undefined) return () => byDefault
  const expression = new Expression(source)
  return (exchange) => toShare(expression.evaluate(exchange))
}

/** A bool, or a number from 0 to 1; whatever else it is, no span is started. */
function toShare(result: CelResult): number {
  if (typeof result === 'boolean') return result ? 1 : 0
  if (typeof result !== 'number' && typeof result !== 'bigint') return 0
  const number = Number(result)
  return number > 0 ? Math.min(number, 1) : 0
}

export default apply

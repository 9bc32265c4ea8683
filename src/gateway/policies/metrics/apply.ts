import { type Infer, list, record } from '../../../ground/base/shape.ts'
import type { MetricLabel } from '../../../ground/exchange/observe.ts'
import { namedExpression } from '../../../ground/model/shapes.ts'
import { Expression, observedParts, textOfResult } from '../../variables/index.ts'
import type { PolicyApply } from '../define.ts'

/** The compiled form that proxies receive. Each name occurs once. */
const shape = record({ labels: list(namedExpression) })

const unknown = 'unknown'

const apply: PolicyApply<Infer<typeof shape>> = {
  shape,
  bind({ labels }) {
    const bound = labels.map(({ name, expression }) => [name, new Expression(expression)] as const)
    return {
      metrics: {
        parts: observedParts(bound.map(([, expression]) => expression)),
        labels: (exchange) =>
          bound.map(([name, expression]): MetricLabel => {
            const value = textOfResult(expression.evaluate(exchange))
            return [name, value === undefined || value === '' ? unknown : value]
          }),
      },
    }
  },
}

export default apply

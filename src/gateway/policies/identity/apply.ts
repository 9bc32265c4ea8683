import { type Infer, list, record } from '../../../ground/base/shape.ts'
import { type Exchange, next, type Verdict } from '../../../ground/exchange/exchange.ts'
import { namedExpression } from '../../../ground/model/shapes.ts'
import { boundedName } from '../../principal/principal.ts'
import { Expression, textOfResult } from '../../variables/index.ts'
import type { PolicyApply } from '../define.ts'

/** The compiled form that proxies receive. */
const shape = record({ dimensions: list(namedExpression) })

const apply: PolicyApply<Infer<typeof shape>> = {
  shape,
  bind({ dimensions }) {
    const compiled = dimensions.map(({ name, expression }) => ({
      name,
      expression: new Expression(expression),
    }))
    return {
      onRequest(exchange: Exchange): Verdict {
        const values: Record<string, string> = {}
        for (const { name, expression } of compiled) {
          const value = textOfResult(expression.evaluate(exchange))
          if (value === undefined || value === '') continue
          values[name] = boundedName(value)
        }
        exchange.learned.ownIdentity = values
        return next
      },
    }
  },
}

export default apply

import { type Infer, record, text } from '../../../../ground/base/shape.ts'
import type { Exchange } from '../../../../ground/exchange/exchange.ts'
import { Expression } from '../../../variables/index.ts'
import type { PolicyApply } from '../../define.ts'

/** The compiled form that proxies receive. Its version is `configVersion` of the definition. */
const shape = record({ source: text })

const apply: PolicyApply<Infer<typeof shape>> = {
  shape,
  bind({ source }) {
    const expression = new Expression(source)
    return {
      connection: {
        sessionOf(exchange) {
          const value = expression.evaluate(exchange as Exchange)
          return typeof value === 'string' && value !== '' ? value : undefined
        },
      },
    }
  },
}

export default apply

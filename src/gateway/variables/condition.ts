import type { Exchange } from '../../ground/exchange/exchange.ts'
import { Expression } from './expression.ts'

/** A condition on exchanges. Without an expression, it holds for every exchange. */
export class Condition {
  readonly expressions: readonly Expression[]

  constructor(source: string | undefined) {
    this.expressions = source === undefined ? [] : [new Expression(source)]
  }

  holds(exchange: Exchange): boolean {
    const [expression] = this.expressions
    return expression === undefined || expression.evaluate(exchange) === true
  }
}

import type { Exchange } from '../../ground/exchange/exchange.ts'
import { Expression } from './expression.ts'

/** Decides by an expression; without one, the answer is always yes. */
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

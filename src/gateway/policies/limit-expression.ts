/**
 * Expressions of limits and budgets. Those of token limits are evaluated before the request is changed for a
 * provider, and their results are kept.
 */
import {
  type CelError,
  type CelResult,
  CelUint,
  isAvailable,
  isCelError,
} from '../../engines/cel/index.ts'
import type { Exchange } from '../../ground/exchange/exchange.ts'
import { Expression, textOfResult } from '../variables/index.ts'

const resultsExtension = 'limit.notedResults'

const resultsOf = ({ extensions }: Exchange) =>
  extensions.get(resultsExtension) as Map<Expression, CelResult> | undefined

/** An expression of a limit. */
export class LimitExpression {
  readonly #expression: Expression
  /** Whether it reads what only the AI backend learns, such as `llm`. */
  readonly isLearned: boolean
  /** Whether it reads `mcp`, so that it concerns calls of tools. */
  readonly isOfCall: boolean
  /** Whether it reads what is known only once the request to a model is read: what is learned, or the body. */
  readonly isLate: boolean

  constructor(source: string) {
    this.#expression = new Expression(source)
    this.isLearned = !isAvailable(source, 'traffic')
    this.isOfCall = this.#expression.mentions('mcp')
    this.isLate = this.#expression.request || this.isLearned
  }

  get source(): string {
    return this.#expression.source
  }

  /** Whether it reads the body of the request. */
  get readsBody(): boolean {
    return this.#expression.request
  }

  /** Evaluates it now, so that later changes of the request do not change the result. */
  note(exchange: Exchange): void {
    const results = resultsOf(exchange) ?? new Map<Expression, CelResult>()
    results.set(this.#expression, this.#expression.evaluate(exchange))
    exchange.extensions.set(resultsExtension, results)
  }

  /** Returns the noted result; without one, evaluates the expression. */
  resultFor(exchange: Exchange): CelResult {
    return resultsOf(exchange)?.get(this.#expression) ?? this.#expression.evaluate(exchange)
  }

  /**
   * Returns the result as a text; undefined if what it reads is missing, and the error if it fails. A request for
   * which it fails must be refused: a client could otherwise evade the limit.
   */
  textFor(exchange: Exchange): string | undefined | CelError {
    const result = this.resultFor(exchange)
    return isCelError(result) && result.kind !== 'missing' ? result : textOfResult(result)
  }
}

/** Returns a result as a number; undefined if it is not a number, or is negative. */
export function numberOf(result: CelResult | undefined): number | undefined {
  const value = result instanceof CelUint ? result.value : result
  if (typeof value !== 'number' && typeof value !== 'bigint') return undefined
  const number = Number(value)
  return number >= 0 ? number : undefined
}

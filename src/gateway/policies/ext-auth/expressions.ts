import {
  type CelResult,
  type CelValue,
  isCelError,
  parseJson,
  writeJson,
} from '../../../engines/cel/index.ts'
import type { Exchange } from '../../../ground/exchange/exchange.ts'
import type { LearnedRecord, LearnedValue } from '../../../ground/exchange/learned.ts'
import { Expression } from '../../variables/index.ts'
import type { Expressions } from './config.ts'

/** Compiled expressions with their names. */
export type Named = readonly { readonly name: string; readonly expression: Expression }[]

export function bindAll(expressions: Expressions = {}): Named {
  return Object.entries(expressions).map(([name, source]) => ({
    name,
    expression: new Expression(source),
  }))
}

/** Evaluates all expressions to plain data; those that fail are left out. */
export function evaluateAll(named: Named, exchange: Exchange): LearnedRecord {
  const found: [string, LearnedValue][] = []
  for (const { name, expression } of named) {
    const value = plainValue(expression.evaluate(exchange))
    if (value !== undefined) found.push([name, value])
  }
  return Object.fromEntries(found)
}

/** Copies the result, because it may refer to memory of the request. */
function plainValue(result: CelResult): LearnedValue | undefined {
  if (isCelError(result)) return undefined
  const json = writeJson(result as CelValue)
  if (isCelError(json)) return undefined
  const value = parseJson(json)
  return isCelError(value) ? undefined : (value as LearnedValue)
}

/** Converts conditions of a Portkey config to an expression that names the target. */
import { entryOf, isObject } from '../../../ground/base/json-object.ts'
import type { SourceField } from '../field.ts'
import { quote } from '../targets.ts'

/** An expression for the name of the target; undefined if a condition cannot be expressed. */
export function choiceOf(strategy: SourceField): string | undefined {
  const fallback = strategy.get('default')
  let expression = fallback.isSet ? quote(fallback.text() ?? '') : 'fail()'
  for (const condition of strategy.items('conditions').toReversed()) {
    const query = queryOf(condition.take('query'))
    const target = condition.text('then')
    if (query === undefined || target === undefined) {
      return condition.report('protection', 'the condition cannot be expressed')
    }
    expression = `(${query}) ? ${quote(target)} : (${expression})`
  }
  return expression
}

/** Parts of the request that conditions may name. */
function valueAt(name: string): string | undefined {
  const [root = '', ...path] = name.split('.')
  const steps = path.map((step) => `[${quote(step)}]`).join('')
  if (root === 'metadata') return `json(request.headers["x-portkey-metadata"])${steps}`
  if (root === 'params') return `json(request.body)${steps}`
  return name === 'url.pathname' ? 'request.path' : undefined
}

/** All fields of a query must match. */
function queryOf(query: unknown): string | undefined {
  if (!isObject(query)) return undefined
  const parts = Object.entries(query).map(([name, operand]) => {
    if (name === '$and' || name === '$or') return joined(operand, name === '$and' ? ' && ' : ' || ')
    const value = valueAt(name)
    return value === undefined ? undefined : comparisonOf(value, operand)
  })
  return parts.length === 0 || parts.includes(undefined)
    ? undefined
    : parts.map((part) => `(${part})`).join(' && ')
}

function joined(list: unknown, operator: string): string | undefined {
  if (!Array.isArray(list) || list.length === 0) return undefined
  const parts = list.map(queryOf)
  return parts.includes(undefined) ? undefined : parts.map((part) => `(${part})`).join(operator)
}

const operators: Readonly<Record<string, string>> = {
  $eq: '==',
  $ne: '!=',
  $gt: '>',
  $gte: '>=',
  $lt: '<',
  $lte: '<=',
}

/** A value that is missing matches no comparison but `$ne` and `$nin`. */
function comparisonOf(value: string, operand: unknown): string | undefined {
  const tests = isObject(operand) ? operand : { $eq: operand }
  const parts = Object.entries(tests).map(([operator, expected]) => {
    const literal = JSON.stringify(expected)
    if (operator === '$in' && Array.isArray(expected))
      return `default(${value} in ${literal}, false)`
    if (operator === '$nin' && Array.isArray(expected))
      return `!default(${value} in ${literal}, false)`
    if (operator === '$regex') return `default(${value}.matches(${literal}), false)`
    const symbol = entryOf(operators, operator)
    if (symbol === undefined || typeof expected === 'object') return undefined
    return `default(${value} ${symbol} ${literal}, ${operator === '$ne'})`
  })
  return parts.length === 0 || parts.includes(undefined) ? undefined : parts.join(' && ')
}

/**
 * Finds what an expression reads that never has a value at the point where it runs. Such a rule would never
 * match, without any sign of it.
 */
import { type ExpressionPoint, type VariableEntry, variableTable } from './gateway-variables.ts'
import { boundWithin, pathOf } from './mentions.ts'
import type { Expression } from './syntax.ts'
import { childrenOf } from './syntax.ts'

interface UnavailableRead {
  readonly at: number
  readonly message: string
}

/** Whether the value of the expression is the result, or its negation. Undefined: neither. */
type Polarity = boolean | undefined

/**
 * Finds all reads of values that are never set at the point. Tests that are always true there, such as
 * `response == null` or `!has(request.endTime)`, are none.
 */
export function unavailableReads(root: Expression, point: ExpressionPoint): UnavailableRead[] {
  const found: UnavailableRead[] = []
  const visit = (expression: Expression, bound: ReadonlySet<string>, polarity: Polarity): void => {
    const read = readOf(expression, bound, point)
    if (read !== undefined) {
      found.push(read)
      return
    }
    if (pathOf(expression) !== undefined) return
    if (isAlwaysTrue(expression, bound, point, polarity)) return
    const inner = boundWithin(expression, bound)
    const next = innerPolarity(expression, polarity)
    for (const child of childrenOf(expression)) visit(child, inner(child), next)
  }
  visit(root, new Set(), true)
  return found
}

function innerPolarity({ op }: Expression, polarity: Polarity): Polarity {
  if (op === 'and' || op === 'or') return polarity
  return op === 'not' && polarity !== undefined ? !polarity : undefined
}

/** Returns the problem of a path that is never set; undefined for other expressions. */
function readOf(
  expression: Expression,
  bound: ReadonlySet<string>,
  point: ExpressionPoint,
): UnavailableRead | undefined {
  const path = pathOf(expression)
  if (path === undefined || bound.has(path[0] ?? '')) return undefined
  const message = unavailable(path, point)
  return message === undefined ? undefined : { at: expression.at, message }
}

/** Returns why a path such as `['llm', 'requestModel']` is never set; undefined if it may be set. */
function unavailable(path: readonly string[], point: ExpressionPoint): string | undefined {
  let entries: ReadonlyMap<string, VariableEntry> | undefined = variableTable
  let instead: string | undefined
  for (let depth = 0; depth < path.length; depth++) {
    const entry: VariableEntry | undefined = entries?.get(path[depth] ?? '')
    if (entry === undefined) return undefined
    instead = entry.instead ?? instead
    if (!point.has.includes(entry.stage)) return unsetText(path, depth, entry, instead, point)
    const name = path[depth + 1] ?? ''
    const hint = entry.absent?.get(name.toLowerCase())
    if (hint !== undefined) return `${path.slice(0, depth + 1).join('.')} has no ${name}; ${hint}`
    entries = entry.fields
  }
  return undefined
}

function unsetText(
  path: readonly string[],
  depth: number,
  { stage }: VariableEntry,
  instead: string | undefined,
  { when }: ExpressionPoint,
): string {
  const isNever = stage === 'never'
  const place = isNever ? '' : ` ${when}`
  const hint = isNever || instead === undefined ? '' : `; ${instead}`
  const around = path.slice(0, depth).join('.')
  return around === ''
    ? `${path[0]} is never set${place}${hint}`
    : `${around} has no field ${path[depth]}${place}${hint}`
}

/** Whether the expression is a test for a value that is never set, and holds. */
function isAlwaysTrue(
  expression: Expression,
  bound: ReadonlySet<string>,
  point: ExpressionPoint,
  polarity: Polarity,
): boolean {
  if (polarity === undefined) return false
  if (expression.op === 'call' && expression.name === 'has') {
    const [field] = expression.args
    return !polarity && field !== undefined && readOf(field, bound, point) !== undefined
  }
  if (expression.op !== 'binary') return false
  const { operator, left, right } = expression
  if (operator !== (polarity ? '==' : '!=')) return false
  const isUnset = (part: Expression) =>
    part.op === 'name' && readOf(part, bound, point) !== undefined
  return (isUnset(left) && isNull(right)) || (isNull(left) && isUnset(right))
}

const isNull = (expression: Expression): boolean =>
  expression.op === 'literal' && expression.value === null

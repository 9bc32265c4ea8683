/** From the text of an expression to its tree. */
import { fail, type Outcome, succeed } from '../base/outcome.ts'
import { BadSyntax } from './bad-syntax.ts'
import { Parser } from './parser.ts'
import { type CelProblem, problemAt } from './problem.ts'
import { childrenOf, type Expression } from './syntax.ts'

/** Deepest nesting of an expression; evaluation takes a few stack frames per level. */
const maxDepth = 250

/** Parses a text of any content; never throws. */
export function parseExpression(source: string): Outcome<Expression, CelProblem> {
  try {
    const root = new Parser(source, maxDepth).parse()
    const deep = tooDeepAt(root)
    return deep === undefined ? succeed(root) : fail(problemAt(source, deep, 'it nests too deeply'))
  } catch (error) {
    if (error instanceof BadSyntax) return fail(problemAt(source, error.at, error.message))
    throw error
  }
}

/** Offset of a part that lies too deep; operands of one chain of `&&` or `||` lie equally deep. */
function tooDeepAt(root: Expression): number | undefined {
  const open = [{ part: root, depth: 1 }]
  for (let item = open.pop(); item !== undefined; item = open.pop()) {
    const { part, depth } = item
    if (depth > maxDepth) return part.at
    for (const child of childrenOf(part)) open.push({ part: child, depth: depth + 1 })
  }
  return undefined
}

/** Finds the variables and fields that an expression reads, so that only those need to be kept. */
import { childrenOf, type Expression } from './syntax.ts'

/** The name of a variable, followed by the constant names of the fields that are read. */
type Path = readonly string[]

export interface MentionedVariables {
  /** Constant paths, as long as possible: the path of `request[x]` is `request`. */
  readonly paths: readonly Path[]
  /** Whether the expression calls `variables()`, which reads everything. */
  readonly readsAll: boolean
}

/** @param isVariable returns true if a name is that of a variable, not of a type or namespace */
export function findMentions(
  root: Expression,
  isVariable: (name: string) => boolean,
): MentionedVariables {
  const paths: Path[] = []
  let readsAll = false
  const visit = (expression: Expression, bound: ReadonlySet<string>): void => {
    const path = pathOf(expression)
    if (path !== undefined) {
      const [name = ''] = path
      if (!bound.has(name) && isVariable(name)) paths.push(path)
      return
    }
    if (expression.op === 'call' && expression.name === 'variables') readsAll = true
    const inner = boundWithin(expression, bound)
    for (const child of childrenOf(expression)) visit(child, inner(child))
  }
  visit(root, new Set())
  return { paths, readsAll }
}

/** Returns the path of `a.b["c"]` as ['a', 'b', 'c']; undefined for any other expression. */
export function pathOf(expression: Expression): Path | undefined {
  if (expression.op === 'name') return [expression.name]
  if (expression.op === 'field') return extend(pathOf(expression.of), expression.name)
  if (expression.op !== 'index' || expression.key.op !== 'literal') return undefined
  const { value } = expression.key
  return typeof value === 'string' ? extend(pathOf(expression.of), value) : undefined
}

function extend(path: Path | undefined, name: string): Path | undefined {
  return path === undefined ? undefined : [...path, name]
}

const loopMacros: ReadonlySet<string> = new Set([
  'all',
  'exists',
  'exists_one',
  'existsOne',
  'filter',
  'map',
  'mapValues',
  'filterKeys',
  'with',
])

type Bound = ReadonlySet<string>

/** Returns a function that returns the names that macros bind in a part of the expression. */
export function boundWithin(expression: Expression, bound: Bound): (child: Expression) => Bound {
  if (expression.op !== 'method') return () => bound
  const { name, of, args } = expression
  const [variable, value] = args
  const isBind = name === 'bind' && of.op === 'name' && of.name === 'cel' && args.length === 3
  const isLoop = loopMacros.has(name) && args.length >= 2
  if (variable?.op !== 'name' || !(isBind || isLoop)) return () => bound
  const inner = new Set([...bound, variable.name])
  const outside = isBind ? value : of
  return (child) => (child === outside || (isBind && child === of) ? bound : inner)
}

/** Returns true if any path reads the value at a dotted path, a value around it, or a part of it. */
export function doesMention({ paths, readsAll }: MentionedVariables, dotted: string): boolean {
  const wanted = dotted.split('.')
  return (
    readsAll ||
    paths.some((path) => path.every((name, i) => i >= wanted.length || name === wanted[i]))
  )
}

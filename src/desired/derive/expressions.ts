/** Finds CEL expressions in objects that do not compile. */
import { expressionPaths } from '../../api/fields.ts'
import { compileCel, gatewayVariables } from '../../cel/index.ts'
import type { Finding } from './finding.ts'

interface Place {
  /** Path from the top of the object: field names, `[]` for list items, `{}` for map values. */
  readonly segments: readonly string[]
  readonly security: boolean
}

const placesByKind = new Map<string, readonly Place[]>()

/** Computes the paths of a kind's expressions once. */
function placesOf(kind: string): readonly Place[] {
  const known = placesByKind.get(kind)
  if (known !== undefined) return known
  const places = expressionPaths(kind).map(({ path, security }) => ({
    segments: segmentsOf(path),
    security,
  }))
  placesByKind.set(kind, places)
  return places
}

function segmentsOf(path: string): string[] {
  return path.match(/\[\]|\{\}|[^.[\]{}]+/g) ?? []
}

/** The problems as findings: `closed` if the expression belongs to a security field, else `ineffective`. */
export function expressionFindings(...of: Parameters<typeof expressionProblems>): Finding[] {
  return expressionProblems(...of).map(({ path, message, security }) => ({
    severity: security ? 'closed' : 'ineffective',
    message: `${path}: ${message}`,
  }))
}

interface ExpressionProblem {
  /** Path of the expression, such as `spec.traffic.authorization.policy.matchExpressions[1]`. */
  readonly path: string
  readonly message: string
  /** Does the expression belong to a security field? */
  readonly security: boolean
}

/**
 * Finds the expressions in a part of an object that do not compile.
 *
 * @param path path of the part without list items, such as `spec.traffic.authorization`
 * @param except field of the part that is not checked
 */
export function expressionProblems(
  kind: string,
  path: string,
  part: unknown,
  except?: string,
): ExpressionProblem[] {
  const start = segmentsOf(path)
  return placesOf(kind).flatMap(({ segments, security }) => {
    const isBelow = start.every((segment, i) => segments[i] === segment)
    const rest = segments.slice(start.length)
    if (!isBelow || (except !== undefined && rest[0] === except)) return []
    return findExpressions(part, rest, path).flatMap(({ at, source }) =>
      problemsOf(at, source, security),
    )
  })
}

interface FoundExpression {
  readonly at: string
  readonly source: string
}

function findExpressions(
  value: unknown,
  segments: readonly string[],
  at: string,
): FoundExpression[] {
  const [segment, ...rest] = segments
  if (segment === undefined) return typeof value === 'string' ? [{ at, source: value }] : []
  if (typeof value !== 'object' || value === null) return []
  if (segment === '[]') {
    const items: readonly unknown[] = Array.isArray(value) ? value : []
    return items.flatMap((item, i) => findExpressions(item, rest, `${at}[${i}]`))
  }
  const fields = value as Readonly<Record<string, unknown>>
  if (segment !== '{}') return findExpressions(fields[segment], rest, `${at}.${segment}`)
  return Object.entries(fields).flatMap(([key, item]) =>
    findExpressions(item, rest, `${at}[${JSON.stringify(key)}]`),
  )
}

function problemsOf(path: string, source: string, security: boolean): ExpressionProblem[] {
  const outcome = compileCel(source, { variables: gatewayVariables })
  if (outcome.ok) return []
  return outcome.problems.map(({ message, line, column }) => ({
    path,
    message: `${message} (line ${line}, column ${column} of the expression)`,
    security,
  }))
}

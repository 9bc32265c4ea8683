/** Finds CEL expressions in objects that do not compile, or read what never has a value where they run. */

import {
  availabilityProblems,
  compileCel,
  type ExpressionPointName,
  gatewayVariables,
  positionedText,
} from '../../../engines/cel/index.ts'
import type { ExpressionPoints } from '../../../gateway/policies/define.ts'
import { findPolicy } from '../../../gateway/policies/registry.ts'
import { parseDurationMs } from '../../../ground/base/duration.ts'
import { type PolicyPhase, policySections } from '../../../ground/model/resources.ts'
import { expressionPaths } from '../../api/fields.ts'
import type { Finding } from './finding.ts'

interface Place {
  /** Path from the top of the object: field names, `[]` for list items, `{}` for map values. */
  readonly segments: readonly string[]
  readonly security: boolean
  /** Whether the field may have a duration instead. */
  readonly orDuration: boolean
  /** When it runs in each phase. */
  readonly points: Points | undefined
}

type Points = Readonly<Record<PolicyPhase, ExpressionPointName>>

const placesByKind = new Map<string, readonly Place[]>()

/** Computes the paths of a kind's expressions once. */
function placesOf(kind: string): readonly Place[] {
  const known = placesByKind.get(kind)
  if (known !== undefined) return known
  const places = expressionPaths(kind).map(({ path, ...place }) => {
    const segments = segmentsOf(path)
    return { ...place, segments, points: pointsOf(segments) ?? ownPointsOf(kind, segments) }
  })
  placesByKind.set(kind, places)
  return places
}

function segmentsOf(path: string): string[] {
  return path.match(/\[\]|\{\}|[^.[\]{}]+/g) ?? []
}

/** Returns when an expression runs, according to the policy that it belongs to. Inline policies are `backend`. */
function pointsOf(segments: readonly string[]): Points | undefined {
  const inline = segments.lastIndexOf('policies')
  const own = policySections.find((name) => name === segments[1])
  const section = inline < 0 ? (own ?? 'backend') : 'backend'
  const at = inline < 0 ? 2 : inline + 1
  const definition = findPolicy(section, segments[at] ?? '')
  const written = segments.slice(at + 1).filter((segment) => segment !== '[]' && segment !== '{}')
  if (written.join('.') === 'conditional.condition') return conditionPoints
  const names = written[0] === 'conditional' ? written.slice(2) : written
  const found = definition?.expressions?.find(({ path }) => isWithin(names.join('.'), path))
  return found && { PreRouting: found.early ?? found.point, PostRouting: found.point }
}

/** When the conditions of variants run: before everything else of their policy. */
const conditionPoints: Points = { PreRouting: 'earlyExtAuth', PostRouting: 'traffic' }

/** When expressions run that belong to no policy, by kind and field. */
const ownPoints: Readonly<Record<string, Readonly<Record<string, ExpressionPointName>>>> = {
  GatewayBudget: { when: 'budget', each: 'budget' },
  GatewayBackend: { source: 'traffic', when: 'mcpServer' },
  AgentgatewayModel: { source: 'traffic', when: 'traffic' },
}

function ownPointsOf(kind: string, segments: readonly string[]): Points | undefined {
  const point = ownPoints[kind]?.[segments.at(-1) ?? '']
  return point && { PreRouting: point, PostRouting: point }
}

const isWithin = (path: string, around: ExpressionPoints[number]['path']): boolean =>
  around === '' || path === around || path.startsWith(`${around}.`)

/** Paths of a kind's expressions for which no policy says when they run. */
export function expressionsWithoutPoint(kind: string): string[] {
  return placesOf(kind)
    .filter(({ points }) => points === undefined)
    .map(({ segments }) => segments.join('.'))
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
  /** Whether the expression belongs to a security field. */
  readonly security: boolean
}

/**
 * Finds the expressions in a part of an object that do not compile, or that read what never has a value at the
 * point where they run.
 *
 * @param path path of the part without list items, such as `spec.traffic.authorization`
 * @param phase phase of the policy
 * @param except field of the part that is not checked
 */
export function expressionProblems(
  kind: string,
  path: string,
  part: unknown,
  phase: PolicyPhase = 'PostRouting',
  except?: string,
): ExpressionProblem[] {
  const start = segmentsOf(path)
  return placesOf(kind).flatMap(({ segments, security, orDuration, points }) => {
    const isBelow = start.every((segment, i) => segments[i] === segment)
    const rest = segments.slice(start.length)
    if (!isBelow || (except !== undefined && rest[0] === except)) return []
    return findExpressions(part, rest, path).flatMap(({ at, source }) => {
      if (orDuration && parseDurationMs(source) !== undefined) return []
      const problems = problemsOf(source, points?.[phase])
      return problems.map((message) => ({ path: at, message, security }))
    })
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

function problemsOf(source: string, point: ExpressionPointName | undefined): string[] {
  const outcome = compileCel(source, { variables: gatewayVariables })
  if (!outcome.ok) return outcome.problems.map(positionedText)
  return point === undefined ? [] : availabilityProblems(source, point).map(positionedText)
}

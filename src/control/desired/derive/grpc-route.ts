/**
 * GRPCRoute: a gRPC method is a path (`/service/method`), so its rules are compiled to HTTP rules. A
 * service without a method is a path prefix; longer prefixes are more specific. Regular expressions
 * are less specific than exact names (Gateway API, GRPCRouteRule).
 */
import type { GrpcMethodSpec, GrpcRuleSpec } from '../../api/gateway-api/grpc-route.ts'
import type { HttpMatchSpec, HttpRuleSpec } from '../../api/gateway-api/http-route.ts'
import type { Failure } from '../conditions.ts'
import { type CheckRegex, type RouteContext, type ViewedRule, viewRule } from './http-rule.ts'

export function viewGrpcRule(
  { matches = [], ...rest }: GrpcRuleSpec,
  index: number,
  route: RouteContext,
): ViewedRule {
  const http: HttpRuleSpec = {
    ...rest,
    matches: matches.map(({ method, headers }) => ({
      ...pathOf(method),
      ...(headers !== undefined && { headers }),
    })),
  }
  const viewed = viewRule(http, index, route)
  // Reports the pattern as the user wrote it, not the generated path.
  const unusable = badPattern(matches, index, route.checkRegex) ?? viewed.unusable
  return { ...viewed, unusable }
}

/** The path of all calls that match (gRPC over HTTP/2, Requests). */
function pathOf(match: GrpcMethodSpec | undefined): Pick<HttpMatchSpec, 'path'> {
  const { type = 'Exact', service, method } = match ?? {}
  if (type === 'RegularExpression') {
    return { path: { type, value: `/${pattern(service)}/${pattern(method)}` } }
  }
  if (method === undefined) {
    return service === undefined ? {} : { path: { type: 'PathPrefix', value: `/${service}` } }
  }
  if (service !== undefined) return { path: { type: 'Exact', value: `/${service}/${method}` } }
  // Method names contain no special characters of regular expressions.
  return { path: { type: 'RegularExpression', value: `/[^/]+/${method}` } }
}

function pattern(name: string | undefined): string {
  return name === undefined ? '[^/]+' : `(?:${name})`
}

function badPattern(
  matches: NonNullable<GrpcRuleSpec['matches']>,
  index: number,
  checkRegex: CheckRegex,
): Failure | undefined {
  for (const [position, { method }] of matches.entries()) {
    if (method?.type !== 'RegularExpression') continue
    for (const part of ['service', 'method'] as const) {
      const value = method[part]
      const problem = value === undefined ? undefined : checkRegex(value)
      if (problem === undefined) continue
      const message = `spec.rules[${index}].matches[${position}].method.${part}: ${problem}`
      return { reason: 'UnsupportedValue', message }
    }
  }
  return undefined
}

/**
 * GRPCRoute: a method is a path (`/service/method`), so its rules become those of the same program
 * that HTTPRoutes are matched by. A service alone is a prefix, which is more specific the longer it
 * is, and any pattern comes after what is written out (Gateway API, GRPCRouteRule).
 */
import type { GrpcMethodSpec, GrpcRuleSpec } from '../../api/gateway-api/grpc-route.ts'
import type { HttpMatchSpec, HttpRuleSpec } from '../../api/gateway-api/http-route.ts'
import type { Failure } from '../conditions.ts'
import type { Reader, Stage } from '../graph.ts'
import { type CheckRegex, type ViewedRule, viewRule } from './http-rule.ts'
import type { Referrer } from './references.ts'
import { deriveRequestRoute } from './request-route.ts'

export function grpcRouteStage(checkRegex: CheckRegex): Stage {
  return {
    name: 'grpc-route',
    kinds: ['GRPCRoute'],
    derive: (self, read) =>
      deriveRequestRoute<'GRPCRoute'>(self, read, ({ rules = [{}] }, from) =>
        rules.map((rule, index) => viewGrpcRule(rule, index, from, read, checkRegex)),
      ),
  }
}

function viewGrpcRule(
  { matches = [], ...rest }: GrpcRuleSpec,
  index: number,
  from: Referrer,
  read: Reader,
  checkRegex: CheckRegex,
): ViewedRule {
  const http: HttpRuleSpec = {
    ...rest,
    matches: matches.map(({ method, headers }) => ({
      ...pathOf(method),
      ...(headers !== undefined && { headers }),
    })),
  }
  const viewed = viewRule(http, index, from, read, checkRegex)
  // Named as it was written: the path is ours.
  const unusable = badPattern(matches, index, checkRegex) ?? viewed.unusable
  return { ...viewed, unusable }
}

/** The path that every call of a method has (gRPC over HTTP/2, Requests). */
function pathOf(match: GrpcMethodSpec | undefined): Pick<HttpMatchSpec, 'path'> {
  const { type = 'Exact', service, method } = match ?? {}
  if (type === 'RegularExpression') {
    return { path: { type, value: `/${pattern(service)}/${pattern(method)}` } }
  }
  if (method === undefined) {
    return service === undefined ? {} : { path: { type: 'PathPrefix', value: `/${service}` } }
  }
  if (service !== undefined) return { path: { type: 'Exact', value: `/${service}/${method}` } }
  // Names of methods have no character that means something in a pattern.
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

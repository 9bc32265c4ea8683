/** What the readers of the standalone agentgateway share. */
import type { Conversion, Fields } from '../conversion.ts'
import type { FindingKind, SourceField } from '../field.ts'
import type { RoutePlan } from '../plan.ts'

export type Filters = Fields[]

/** What the policies of a route are added to. */
export interface RouteScene {
  readonly plan: RoutePlan
  readonly name: string
  readonly result: Conversion
  readonly filters: Filters
  /** Policies of the addresses of the route's backends. */
  readonly backend: Record<string, unknown>
  /** Fields of the rule. */
  readonly rule: Record<string, unknown>
}

/** Reports and returns undefined for a host that is no `host:port`. */
export function hostOf(
  field: SourceField,
  kind: FindingKind = 'lost',
): { host: string; port: number } | undefined {
  const text = field.text()
  const [, host, port] = /^\[?([^\]]+?)\]?:(\d+)$/.exec(text ?? '') ?? []
  if (host !== undefined) return { host, port: Number(port) }
  return field.report(kind, 'is not host:port')
}

const units: Readonly<Record<string, number>> = { ms: 0.001, s: 1, m: 60, h: 3600, d: 86_400 }

/** Seconds of a duration such as `1m30s`; NaN for anything else. */
export function secondsOf(text: string): number {
  if (!/^(\d+(ms|[smhd]))+$/.test(text)) return Number.NaN
  const parts = [...text.matchAll(/(\d+)(ms|[smhd])/g)]
  return parts.reduce((sum, [, count, unit = '']) => sum + Number(count) * (units[unit] ?? 0), 0)
}

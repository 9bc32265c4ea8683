/** Compiles an HTTPRoute rule to the form for proxies, and collects its problems. */

import { parseDurationMs } from '../../../ground/base/duration.ts'
import { exactList } from '../../../ground/base/exact-list.ts'
import { filterProblem } from '../../../ground/model/filter-problems.ts'
import { headerChangesOf } from '../../../ground/model/inline-secrets.ts'
import type { ObjectRef } from '../../../ground/model/names.ts'
import type {
  NamedMatch,
  PathModifier,
  RouteFilter,
  RouteMatch,
  RouteResource,
  WeightedBackend,
} from '../../../ground/model/resources.ts'
import type { HttpFilter, HttpPathModifier } from '../../api/gateway-api/filters.ts'
import type {
  HttpMatchSpec,
  HttpRuleSpec,
  NamedMatchSpec,
} from '../../api/gateway-api/http-route.ts'
import { findRouteKind } from '../../api/kinds.ts'
import type { Failure } from '../conditions.ts'
import type { Reader } from '../graph.ts'
import { delegationOf, isRouteReference } from './delegation.ts'
import { resolveRouteBackend } from './inference-pool.ts'
import { isModelSetRef, modelSetName } from './model-view.ts'
import { type BackendUse, type Referrer, resolveBackend } from './references.ts'

/** Checks a pattern with the engine that will run it. Returns undefined if the pattern is valid. */
export type CheckRegex = (pattern: string) => string | undefined

type RuleFields =
  | 'matches'
  | 'filters'
  | 'backends'
  | 'requestTimeoutMs'
  | 'backendTimeoutMs'
  | 'session'

export interface ViewedRule extends Pick<RouteResource, RuleFields> {
  /** Why the rule cannot be applied. Its requests fail with 500. */
  readonly unusable: Failure | undefined
  /** References that cannot be resolved. */
  readonly refs: readonly Failure[]
  /** Messages about fields that have no effect yet. */
  readonly notes: readonly string[]
  /** Whether only the rules of other routes serve its requests. */
  readonly isDelegated?: boolean
}

/** The route of a rule, and what is needed to compile its rules. */
export interface RouteContext {
  readonly from: Referrer
  readonly route: ObjectRef
  readonly read: Reader
  readonly checkRegex: CheckRegex
}

interface Context extends RouteContext {
  readonly path: string
  readonly use: BackendUse | undefined
  unusable: Failure | undefined
  readonly refs: Failure[]
  readonly notes: string[]
}

const none: readonly never[] = []

function refuse(context: Context, reason: string, message: string): void {
  context.unusable ??= { reason, message: `${context.path}.${message}` }
}

/** `position` is that of the match in the rule. */
function namedMatches(
  specs: readonly NamedMatchSpec[] | undefined,
  field: string,
  position: number,
  context: Context,
): readonly NamedMatch[] {
  if (specs === undefined) return none
  const seen = new Set<string>()
  const matches: NamedMatch[] = []
  for (const { name, value, type = 'Exact' } of specs) {
    // Only the first entry of a name is used. Header names are case-insensitive.
    const identity = field === 'headers' ? name.toLowerCase() : name
    if (seen.has(identity)) continue
    seen.add(identity)
    if (type === 'RegularExpression') {
      checkPattern(value, `matches[${position}].${field}[${name}]`, context)
    }
    matches.push({ name: identity, type, value })
  }
  return exactList(matches)
}

function checkPattern(pattern: string, field: string, context: Context): void {
  const problem = context.checkRegex(pattern)
  if (problem !== undefined) refuse(context, 'UnsupportedValue', `${field}: ${problem}`)
}

function viewMatch(spec: HttpMatchSpec, position: number, context: Context): RouteMatch {
  const type = spec.path?.type ?? 'PathPrefix'
  const value = spec.path?.value ?? '/'
  if (type === 'RegularExpression') checkPattern(value, `matches[${position}].path`, context)
  return {
    path: { type, value },
    ...(spec.method !== undefined && { method: spec.method }),
    headers: namedMatches(spec.headers, 'headers', position, context),
    query: namedMatches(spec.queryParams, 'queryParams', position, context),
  }
}

function pathModifier(spec: HttpPathModifier | undefined): { path?: PathModifier } {
  if (spec === undefined) return {}
  const value = spec.replaceFullPath ?? spec.replacePrefixMatch ?? ''
  return { path: { type: spec.type, value } }
}

function viewMirror(spec: HttpFilter, context: Context): RouteFilter[] {
  const mirror = spec.requestMirror
  if (mirror === undefined) return []
  const { from, read, use } = context
  const { target, failure } = resolveBackend(mirror.backendRef, from, read, use)
  if (failure !== undefined) {
    context.refs.push(failure)
    return []
  }
  const { numerator, denominator = 100 } = mirror.fraction ?? { numerator: mirror.percent ?? 100 }
  return [{ type: 'mirror', target, numerator, denominator }]
}

function viewFilter(spec: HttpFilter, context: Context): RouteFilter[] {
  switch (spec.type) {
    case 'RequestHeaderModifier':
      return [
        { type: 'requestHeaders', changes: headerChangesOf(spec.requestHeaderModifier ?? {}) },
      ]
    case 'ResponseHeaderModifier':
      return [
        { type: 'responseHeaders', changes: headerChangesOf(spec.responseHeaderModifier ?? {}) },
      ]
    case 'RequestRedirect': {
      const { path, statusCode = 302, ...rest } = spec.requestRedirect ?? {}
      return [{ type: 'redirect', ...rest, ...pathModifier(path), statusCode }]
    }
    case 'URLRewrite': {
      const { path, ...rest } = spec.urlRewrite ?? {}
      return [{ type: 'rewrite', ...rest, ...pathModifier(path) }]
    }
    case 'RequestMirror':
      return viewMirror(spec, context)
    case 'CORS':
      // Compiled as a policy of the rule: see rule-policies.ts.
      return []
    case 'ExternalAuth':
      checkAuthorizer(spec, context)
      return []
    case 'ExtensionRef':
      context.refs.push({ reason: 'InvalidKind', message: 'no kind is supported in extensionRef' })
      refuse(context, 'UnsupportedValue', 'filters: ExtensionRef is not supported')
      return []
    default:
      // Ignoring an unknown filter could let something through (Gateway API, HTTPRouteFilter).
      refuse(context, 'UnsupportedValue', `filters: ${spec.type} is not supported yet`)
      return []
  }
}

/** Compiled as a policy of the rule, like CORS; here only the reference to its service is checked. */
function checkAuthorizer({ externalAuth }: HttpFilter, context: Context): void {
  if (externalAuth === undefined) return
  const { from, read, use } = context
  const { failure } = resolveBackend(externalAuth.backendRef, from, read, use)
  if (failure !== undefined) context.refs.push(failure)
}

function checkFilter(filter: RouteFilter, at: string, context: Context): void {
  const problem = filterProblem(filter)
  if (problem === undefined) return
  refuse(context, 'UnsupportedValue', `${at}.${problem.path}: ${problem.message}`)
}

/** `at` is the path of the filters in the rule, such as `filters`. */
function viewFilters(
  specs: readonly HttpFilter[] | undefined,
  at: string,
  context: Context,
): readonly RouteFilter[] {
  if (specs === undefined) return none
  // Only one can be applied, and ignoring the others could let something through.
  if (specs.filter(({ type }) => type === 'ExternalAuth').length > 1) {
    refuse(context, 'UnsupportedValue', 'filters: ExternalAuth cannot be repeated')
  }
  const filters = specs.flatMap((spec, index) => {
    const viewed = viewFilter(spec, context)
    for (const filter of viewed) checkFilter(filter, `${at}[${index}]`, context)
    return viewed
  })
  const has = (type: RouteFilter['type']) => filters.some((filter) => filter.type === type)
  if (has('redirect') && has('rewrite')) {
    const message = 'filters: RequestRedirect and URLRewrite cannot stand in one rule'
    refuse(context, 'IncompatibleFilters', message)
  }
  return exactList(filters)
}

const onRulesOnly = new Set(['RequestRedirect', 'RequestMirror', 'CORS', 'ExternalAuth'])

/** Filters of a backendRef. Only those that edit are supported; Gateway API does not require others. */
function viewBackendFilters(
  specs: readonly HttpFilter[] | undefined,
  at: string,
  context: Context,
): readonly RouteFilter[] {
  for (const { type } of specs ?? []) {
    if (onRulesOnly.has(type)) {
      refuse(context, 'UnsupportedValue', `backendRefs.filters: ${type} is not supported here`)
    }
  }
  return viewFilters(specs, at, context)
}

function timeoutMs(text: string | undefined): number | undefined {
  return text === undefined ? undefined : parseDurationMs(text)
}

export function viewRule(spec: HttpRuleSpec, index: number, route: RouteContext): ViewedRule {
  const { from, read } = route
  const path = `spec.rules[${index}]`
  const use = findRouteKind(from.kind)?.carries
  const context: Context = { ...route, path, use, unusable: undefined, refs: [], notes: [] }
  const given = spec.matches ?? []
  const matches = (given.length === 0 ? [{}] : given).map((match, position) =>
    viewMatch(match, position, context),
  )
  const filters = viewFilters(spec.filters, 'filters', context)
  const delegation = from.kind === 'HTTPRoute' ? delegationOf(route.route, index, read) : undefined
  if (delegation !== undefined) {
    checkDelegation(spec, matches, filters, context)
    context.refs.push(...delegation.failures)
  }
  const backends =
    delegation === undefined
      ? viewBackends(spec.backendRefs, index, context)
      : delegation.hasRoutes
        ? []
        : delegation.failures.map(unresolvedBackend)
  const requestTimeoutMs = timeoutMs(spec.timeouts?.request)
  const backendTimeoutMs = timeoutMs(spec.timeouts?.backendRequest)
  return {
    matches,
    filters,
    backends,
    ...(requestTimeoutMs !== undefined && { requestTimeoutMs }),
    ...(backendTimeoutMs !== undefined && { backendTimeoutMs }),
    unusable: context.unusable,
    refs: exactList(context.refs),
    notes: exactList(context.notes),
    ...(delegation?.hasRoutes === true && context.unusable === undefined && { isDelegated: true }),
  }
}

type BackendRefs = HttpRuleSpec['backendRefs']

function viewBackends(refs: BackendRefs, index: number, context: Context): WeightedBackend[] {
  const { from, read, use } = context
  return (refs ?? []).map((reference, position) => {
    if (isModelSetRef(reference)) return modelSet(reference, index, position, context)
    const { target, failure } = resolveRouteBackend(reference, from, read, use)
    if (failure !== undefined) context.refs.push(failure)
    const { weight = 1 } = reference
    const at = `backendRefs[${position}].filters`
    return { weight, target, filters: viewBackendFilters(reference.filters, at, context) }
  })
}

const unresolvedBackend = ({ reason, message }: Failure): WeightedBackend => ({
  weight: 1,
  target: { type: 'invalid', reason, message },
  filters: [],
})

/** A rule that delegates selects requests by a prefix, and leaves to others what answers them. */
function checkDelegation(
  { backendRefs = [], sessionPersistence }: HttpRuleSpec,
  matches: readonly RouteMatch[],
  filters: readonly RouteFilter[],
  context: Context,
): void {
  const refuseIf = (isWrong: boolean, message: string) => {
    if (isWrong) refuse(context, 'UnsupportedValue', message)
  }
  refuseIf(
    !backendRefs.every(isRouteReference),
    'backendRefs: a rule that refers to HTTPRoutes can have no other backends',
  )
  refuseIf(
    backendRefs.some((reference) => (reference.filters ?? []).length > 0),
    'backendRefs.filters: they are not possible for HTTPRoutes; use those of the rule',
  )
  refuseIf(
    matches.some(({ path }) => path.type !== 'PathPrefix'),
    'matches.path: a rule that refers to HTTPRoutes needs PathPrefix',
  )
  refuseIf(
    filters.some(({ type }) => type === 'redirect' || type === 'rewrite'),
    'filters: a rule that refers to HTTPRoutes can neither redirect nor rewrite',
  )
  refuseIf(
    sessionPersistence !== undefined,
    'sessionPersistence: set it in the HTTPRoutes that the rule refers to',
  )
}

/** The models that refer to the rule. `position` is that of the backendRef. */
function modelSet(
  { weight = 1, filters }: NonNullable<BackendRefs>[number],
  index: number,
  position: number,
  context: Context,
): WeightedBackend {
  const { namespace } = context.route
  const target = { type: 'backend', namespace, name: modelSetName(context.route, index) } as const
  const at = `backendRefs[${position}].filters`
  return { weight, target, filters: viewBackendFilters(filters, at, context) }
}

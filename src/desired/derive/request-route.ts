/** HTTPRoute and GRPCRoute: one resource for proxies per rule, and one status entry per parentRef. */
import type { GrpcRouteSpec, GrpcRuleSpec } from '../../api/gateway-api/grpc-route.ts'
import type { HttpRouteSpec, HttpRuleSpec } from '../../api/gateway-api/http-route.ts'
import type { DecidedCondition } from '../../model/conditions.ts'
import { objectKey } from '../../model/names.ts'
import type { Attachment, BackendTarget, RouteResource } from '../../model/resources.ts'
import { conditionOf, conditionTrue, type Failure, joinFailures } from '../conditions.ts'
import type { Derived, Reader, Stage } from '../graph.ts'
import type { ObjectState } from '../object-state.ts'
import { specOf } from '../specs.ts'
import type { CheckRegex, RouteContext, ViewedRule } from './http-rule.ts'
import { refusedRoute } from './refused-child.ts'
import type { ParentAttachment } from './route-attachment.ts'
import { attachToParents, settleClaims } from './route-claims.ts'
import { attachmentsOf, deriveRoute, routeStageName, unresolved } from './routes.ts'
import { type RulePolicies, rulePolicies } from './rule-policies.ts'
import { withSession } from './session-persistence.ts'

interface RuleFindings {
  readonly rules: readonly ViewedRule[]
  /** Set if none of the rules can be applied. */
  readonly totalFailure: Failure | undefined
  /** Set if only some of the rules cannot be applied. */
  readonly partialFailure: Failure | undefined
  readonly refs: Failure | undefined
  readonly notes: string
}

function routeNotes({ useDefaultGateways }: AnyRouteSpec): string[] {
  return useDefaultGateways === undefined ? [] : ['spec.useDefaultGateways is not supported yet']
}

function summarizeRules(
  spec: AnyRouteSpec,
  rules: readonly ViewedRule[],
  policies: RulePolicies,
): RuleFindings {
  const failures = rules.flatMap(({ unusable }) => (unusable === undefined ? [] : [unusable]))
  const combined = joinFailures(failures)
  const notes = [...routeNotes(spec), ...rules.flatMap((rule) => rule.notes), ...policies.notes]
  const all = failures.length === rules.length
  return {
    rules,
    totalFailure: all ? combined : undefined,
    partialFailure: all ? undefined : combined,
    refs: unresolved(rules.flatMap(({ refs }) => refs)),
    notes: notes.join('; '),
  }
}

function conditionsOf(
  parent: ParentAttachment,
  findings: RuleFindings,
  generation: number,
): DecidedCondition[] {
  const failure = parent.failure ?? findings.totalFailure
  const notes = [parent.note ?? '', findings.notes].filter((note) => note !== '').join('; ')
  const conditions = [
    conditionOf('Accepted', failure, 'Accepted', generation, notes),
    conditionOf('ResolvedRefs', findings.refs, 'ResolvedRefs', generation),
  ]
  if (failure === undefined && findings.partialFailure !== undefined) {
    const { message: why, own } = findings.partialFailure
    const message = `Dropped Rule: ${why}; requests of these rules are answered 500`
    const partial = conditionTrue('PartiallyInvalid', 'UnsupportedValue', generation, message)
    conditions.push({ ...partial, ...(own && { own }) })
  }
  return conditions
}

function resourcesOf(
  self: ObjectState,
  spec: AnyRouteSpec,
  rules: readonly ViewedRule[],
  attachments: readonly Attachment[],
): RouteResource[] {
  return rules.map(({ unusable, refs: _refs, notes: _notes, ...rule }, ruleIndex) => {
    const ruleName = spec.rules?.[ruleIndex]?.name
    return {
      type: 'route',
      key: `route/${objectKey(self.ref)}/${ruleIndex}`,
      route: self.ref,
      ruleIndex,
      ...(ruleName !== undefined && { ruleName }),
      ...self.age,
      attachments,
      ...rule,
      ...(unusable !== undefined && { unusable: unusable.message }),
    }
  })
}

/** All backends of a rule, including those of mirror filters. */
function targetsOf({ backends, filters }: ViewedRule): BackendTarget[] {
  const all = [...filters, ...backends.flatMap((backend) => backend.filters)]
  const mirrors = all.flatMap((filter) => (filter.type === 'mirror' ? [filter.target] : []))
  return [...backends.map(({ target }) => target), ...mirrors]
}

type AnyRouteSpec = HttpRouteSpec | GrpcRouteSpec

/** Compiles a rule of one kind of route. */
type ViewRule<Rule> = (rule: Rule, index: number, route: RouteContext) => ViewedRule

/** The stage for a kind of route that carries requests. */
export function requestRouteStage<Rule extends HttpRuleSpec | GrpcRuleSpec>(
  kind: string,
  viewRule: ViewRule<Rule>,
  checkRegex: CheckRegex,
): Stage {
  return {
    name: routeStageName(kind),
    kinds: [kind],
    derive: (self, read) => {
      const route = { from: { kind, namespace: self.ref.namespace }, read, checkRegex }
      return deriveRequests(self, read, (rule, index) => viewRule(rule as Rule, index, route))
    },
  }
}

/** Derives everything from an HTTPRoute or GRPCRoute. */
function deriveRequests(
  self: ObjectState,
  read: Reader,
  viewRule: (rule: HttpRuleSpec | GrpcRuleSpec, index: number) => ViewedRule,
): Derived {
  if (self.object === undefined) return refusedRoute(self, read)
  const spec: AnyRouteSpec = specOf<'HTTPRoute'>(self.object)
  const parents = settleClaims(self, attachToParents(self, read), read)
  if (parents.length === 0) return {}
  const specs = spec.rules ?? [{}]
  const rules = specs.map((rule, index) => {
    const viewed = viewRule(rule, index)
    return withSession(viewed, rule.sessionPersistence, { route: self.ref, index }, read)
  })
  const policies = rulePolicies(self, specs, read)
  const findings = summarizeRules(spec, rules, policies)
  const attachments = attachmentsOf(parents)
  const resources = [...resourcesOf(self, spec, rules, attachments), ...policies.resources]
  return deriveRoute(
    self,
    parents,
    {
      rules: specs,
      resources: attachments.length === 0 ? [] : resources,
      isAccepted: findings.totalFailure === undefined,
      targets: rules.flatMap(targetsOf),
      conditionsOf: (parent) => conditionsOf(parent, findings, self.generation),
    },
    read,
  )
}

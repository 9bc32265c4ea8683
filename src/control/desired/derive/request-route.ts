/** HTTPRoute and GRPCRoute: one resource for proxies per rule, and one status entry per parentRef. */

import { exactList } from '../../../ground/base/exact-list.ts'
import type { DecidedCondition } from '../../../ground/model/conditions.ts'
import { type Age, type ObjectRef, objectKey } from '../../../ground/model/names.ts'
import type {
  Attachment,
  BackendTarget,
  DelegatedFrom,
  RouteResource,
} from '../../../ground/model/resources.ts'
import type { GrpcRouteSpec, GrpcRuleSpec } from '../../api/gateway-api/grpc-route.ts'
import type { HttpRouteSpec, HttpRuleSpec } from '../../api/gateway-api/http-route.ts'
import { conditionOf, conditionTrue, type Failure, joinFailures } from '../conditions.ts'
import type { Derived, Reader, Stage } from '../graph.ts'
import type { ObjectState } from '../object-state.ts'
import { specOf } from '../specs.ts'
import {
  below,
  type Chain,
  type ChainRule,
  chainRule,
  chainsTo,
  delegatingParents,
} from './delegated-rules.ts'
import type { CheckRegex, RouteContext, ViewedRule } from './http-rule.ts'
import { refusedRoute } from './refused-child.ts'
import type { ParentAttachment } from './route-attachment.ts'
import { readParents } from './route-claims.ts'
import { attachmentsOf, deriveRoute, routeStageName, unresolved } from './routes.ts'
import { type RulePolicies, rulePolicies } from './rule-policies.ts'
import { withSession } from './session-persistence.ts'

interface RuleFindings {
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
  rules: readonly DerivedRule[],
  delegated: readonly DerivedRule[],
  policies: RulePolicies,
): RuleFindings {
  const failures = rules.flatMap(({ unusable }) => (unusable === undefined ? [] : [unusable]))
  const combined = joinFailures(failures)
  const ofRules = new Set([...rules, ...delegated].flatMap((rule) => rule.notes))
  const notes = [...routeNotes(spec), ...ofRules, ...policies.notes]
  const all = failures.length === rules.length
  return {
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
    const message = `Dropped Rule: ${why}; requests that match these rules get status 500`
    const partial = conditionTrue('PartiallyInvalid', 'UnsupportedValue', generation, message)
    conditions.push({ ...partial, ...(own && { own }) })
  }
  return conditions
}

/** All backends of a rule, including those of mirror filters. */
function targetsOf({ backends, filters }: ViewedRule): BackendTarget[] {
  const targets = backends.map(({ target }) => target)
  for (const list of [filters, ...backends.map((backend) => backend.filters)]) {
    for (const filter of list) if (filter.type === 'mirror') targets.push(filter.target)
  }
  return targets
}

type AnyRouteSpec = HttpRouteSpec | GrpcRouteSpec

/** Compiles a rule of one kind of route. */
type ViewRule<Rule> = (rule: Rule, index: number, route: RouteContext) => ViewedRule

/** The place of a rule: its route and its position there. */
interface RulePlace {
  readonly route: ObjectRef
  readonly age: Age
  readonly index: number
  readonly attachments: readonly Attachment[]
  readonly delegatedFrom?: readonly DelegatedFrom[]
}

interface DerivedRule extends Pick<ViewedRule, 'unusable' | 'refs' | 'notes'> {
  /** Not set if only the rules of other routes serve the requests. */
  readonly resource: RouteResource | undefined
  readonly targets: readonly BackendTarget[]
}

type DeriveRule = (
  read: Reader,
  rule: HttpRuleSpec | GrpcRuleSpec,
  index: number,
  route: ObjectRef,
  age: Age,
  attachments: readonly Attachment[],
  above?: ChainRule,
) => DerivedRule

/** What a kind of route needs to derive its rules. */
interface RuleDerivation {
  readonly deriveRule: DeriveRule
  /** Compiles the rules of a chain; not set for kinds to which no rule delegates. */
  readonly chainRule?: (read: Reader, chain: Chain) => ChainRule | undefined
}

/** The stage for a kind of route that carries requests. */
export function requestRouteStage<Rule extends HttpRuleSpec | GrpcRuleSpec>(
  kind: string,
  viewRule: ViewRule<Rule>,
  checkRegex: CheckRegex,
): Stage {
  const view = (
    read: Reader,
    rule: HttpRuleSpec | GrpcRuleSpec,
    index: number,
    route: ObjectRef,
  ) => {
    const from = { kind, namespace: route.namespace }
    return viewRule(rule as Rule, index, { from, route, read, checkRegex })
  }
  const deriveRule: DeriveRule = (read, rule, index, route, age, attachments, above) => {
    const viewed = view(read, rule, index, route)
    const place = { route, age, index, attachments, delegatedFrom: above?.delegatedFrom }
    const whole = above === undefined ? viewed : { ...viewed, ...below(above, viewed) }
    return derivedRule(rule, place, withSession(whole, rule.sessionPersistence, place, read))
  }
  const derivation: RuleDerivation = {
    deriveRule,
    ...(kind === 'HTTPRoute' && {
      chainRule: (read, chain) => chainRule(chain, read, (...at) => view(read, ...at)),
    }),
  }
  return {
    name: routeStageName(kind),
    kinds: [kind],
    derive: (self, read) => deriveRequests(self, read, derivation),
  }
}

function derivedRule(
  { name: ruleName }: HttpRuleSpec | GrpcRuleSpec,
  { route, age, index, attachments, delegatedFrom = [] }: RulePlace,
  viewed: ViewedRule,
): DerivedRule {
  const { unusable, refs, notes, isDelegated = false, ...rule } = viewed
  const isServed = !isDelegated && rule.matches.length > 0
  const above = delegatedFrom.map((one) => `@${objectKey(one.route)}/${one.ruleIndex}`)
  const resource: RouteResource = {
    type: 'route',
    key: `route/${objectKey(route)}/${index}${above.join('')}`,
    route,
    ruleIndex: index,
    ...(ruleName !== undefined && { ruleName }),
    ...(delegatedFrom.length > 0 && { delegatedFrom }),
    ...age,
    attachments,
    ...rule,
    ...(unusable !== undefined && { unusable: unusable.message }),
  }
  return {
    unusable,
    refs,
    notes: rule.matches.length === 0 ? [...notes, unreachableNote(index, delegatedFrom)] : notes,
    resource: isServed ? resource : undefined,
    targets: targetsOf(viewed),
  }
}

function unreachableNote(index: number, delegatedFrom: readonly DelegatedFrom[]): string {
  const rules = delegatedFrom.map(({ route: { namespace, name }, ruleIndex }) => {
    return `rule ${ruleIndex} of ${namespace}/${name}`
  })
  return `spec.rules[${index}] matches no request that it gets from ${rules.join(' and ')}`
}

/** Derives everything from an HTTPRoute or GRPCRoute. */
function deriveRequests(self: ObjectState, read: Reader, derivation: RuleDerivation): Derived {
  if (self.object === undefined) return refusedRoute(self, read)
  const spec: AnyRouteSpec = specOf<'HTTPRoute'>(self.object)
  const chains = derivation.chainRule === undefined ? [] : chainsTo(self, read)
  const above = derivation.chainRule === undefined ? [] : delegatingParents(self, chains, read)
  const parents = [...readParents(self, read), ...above]
  if (parents.length === 0 && chains.length === 0) return {}
  const attachments = read.part(attachmentsOf, parents)
  const specs = spec.rules ?? [{}]
  const { ref: route, age } = self
  const { deriveRule } = derivation
  const rules = specs.map((rule, index) =>
    read.part(deriveRule, rule, index, route, age, attachments),
  )
  const delegated = chains.flatMap((chain) => {
    const joined = derivation.chainRule?.(read, chain)
    if (joined === undefined) return []
    return specs.map((rule, index) =>
      deriveRule(read, rule, index, route, age, chain.attachments, joined),
    )
  })
  const policies = rulePolicies(self, specs, read)
  const findings = summarizeRules(spec, rules, delegated, policies)
  const served = [...(attachments.length === 0 ? [] : rules), ...delegated]
  const resources = served.flatMap(({ resource }) => resource ?? [])
  const isReached = attachments.length > 0 || chains.length > 0
  return deriveRoute(
    self,
    parents,
    {
      rules: specs,
      resources: isReached ? [...resources, ...policies.resources] : [],
      isAccepted: findings.totalFailure === undefined,
      targets: exactList(rules.flatMap(({ targets }) => targets)),
      through: chains.flatMap(({ parents }) => parents),
      conditionsOf: (parent) => conditionsOf(parent, findings, self.generation),
    },
    read,
  )
}

/** Routes of requests, HTTPRoute and GRPCRoute: one wire resource per rule, and one status entry per parentRef. */
import type { GrpcRouteSpec, GrpcRuleSpec } from '../../api/gateway-api/grpc-route.ts'
import type { HttpRouteSpec, HttpRuleSpec } from '../../api/gateway-api/http-route.ts'
import { controllerName } from '../../api/names.ts'
import type { DecidedCondition } from '../../model/conditions.ts'
import { objectKey } from '../../model/names.ts'
import type { Attachment, BackendTarget, RouteResource } from '../../model/resources.ts'
import { allOwn, conditionOf, conditionTrue, type Failure } from '../conditions.ts'
import type { Derived, Reader } from '../graph.ts'
import type { ObjectState } from '../object-state.ts'
import { type SpecOf, specOf } from '../specs.ts'
import type { ViewedRule } from './http-rule.ts'
import type { Referrer } from './references.ts'
import { refusedRoute } from './refused-child.ts'
import { rejectedConditions } from './rejected.ts'
import { type ParentAttachment, statusParentRef } from './route-attachment.ts'
import { attachToParents, settleClaims } from './route-claims.ts'
import {
  acceptedGateways,
  attachmentsOf,
  contributionsOf,
  type RouteView,
  unresolved,
} from './routes.ts'
import { type RulePolicies, rulePolicies } from './rule-policies.ts'
import { withSession } from './session-persistence.ts'

interface RuleFindings {
  readonly rules: readonly ViewedRule[]
  /** Set where no rule at all can be honoured. */
  readonly wholly: Failure | undefined
  /** Set where some rules cannot. */
  readonly partly: Failure | undefined
  readonly refs: Failure | undefined
  readonly notes: string
}

function routeNotes({ useDefaultGateways }: AnyRouteSpec): string[] {
  return useDefaultGateways === undefined ? [] : ['spec.useDefaultGateways is not supported yet']
}

function judge(
  spec: AnyRouteSpec,
  rules: readonly ViewedRule[],
  policies: RulePolicies,
): RuleFindings {
  const failures = rules.flatMap(({ unusable }) => (unusable === undefined ? [] : [unusable]))
  const first = failures[0]
  const message = failures.map((failure) => failure.message).join('; ')
  const combined =
    first === undefined ? undefined : { reason: first.reason, message, ...allOwn(failures) }
  const all = failures.length === rules.length
  return {
    rules,
    wholly: all ? combined : undefined,
    partly: all ? undefined : combined,
    refs: unresolved(rules.flatMap(({ refs }) => refs)),
    notes: [...routeNotes(spec), ...rules.flatMap(({ notes }) => notes), ...policies.notes].join(
      '; ',
    ),
  }
}

function conditionsOf(
  parent: ParentAttachment,
  findings: RuleFindings,
  generation: number,
): DecidedCondition[] {
  const failure = parent.failure ?? findings.wholly
  const notes = [parent.note ?? '', findings.notes].filter((note) => note !== '').join('; ')
  const conditions = [
    conditionOf('Accepted', failure, 'Accepted', generation, notes),
    conditionOf('ResolvedRefs', findings.refs, 'ResolvedRefs', generation),
  ]
  if (failure === undefined && findings.partly !== undefined) {
    const { message: why, own } = findings.partly
    const message = `Dropped Rule: ${why}; requests of these rules are answered 500`
    const partly = conditionTrue('PartiallyInvalid', 'UnsupportedValue', generation, message)
    conditions.push({ ...partly, ...(own && { own }) })
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

/** Where requests of a rule may go, mirrored ones included. */
function targetsOf({ backends, filters }: ViewedRule): BackendTarget[] {
  const all = [...filters, ...backends.flatMap((backend) => backend.filters)]
  const mirrors = all.flatMap((filter) => (filter.type === 'mirror' ? [filter.target] : []))
  return [...backends.map(({ target }) => target), ...mirrors]
}

type RequestRouteKind = 'HTTPRoute' | 'GRPCRoute'
type AnyRouteSpec = HttpRouteSpec | GrpcRouteSpec
type AnyRuleSpec = HttpRuleSpec | GrpcRuleSpec

/** Makes the rules of a route, whatever its kind writes them in. */
type ViewRules<Kind extends RequestRouteKind> = (
  spec: SpecOf<Kind>,
  from: Referrer,
  read: Reader,
) => readonly ViewedRule[]

/** Everything that follows from a route of requests. */
export function deriveRequestRoute<Kind extends RequestRouteKind>(
  self: ObjectState,
  read: Reader,
  viewRules: ViewRules<Kind>,
): Derived {
  if (self.object === undefined) return refusedRoute(self, read)
  const spec = specOf<Kind>(self.object)
  const parents = settleClaims(self, attachToParents(self, read), read)
  if (parents.length === 0) return {}
  const { kind, namespace } = self.ref
  const specs: readonly AnyRuleSpec[] = spec.rules ?? [{}]
  const rules = viewRules(spec, { kind, namespace }, read).map((rule, index) =>
    withSession(rule, specs[index]?.sessionPersistence, { route: self.ref, index }, read),
  )
  const policies = rulePolicies(self, specs, read)
  const findings = judge(spec, rules, policies)
  const attachments = attachmentsOf(parents)
  const view: RouteView = {
    gateways: acceptedGateways(parents),
    ruleNames: specs.flatMap(({ name }) => (name === undefined ? [] : [name])),
  }
  const resources = [...resourcesOf(self, spec, rules, attachments), ...policies.resources]
  const targets = rules.flatMap(targetsOf)
  return {
    value: view,
    resources: attachments.length === 0 ? [] : resources,
    contributions: contributionsOf(self, parents, findings.wholly === undefined, targets, read),
    status: {
      parents: parents.map((parent) => ({
        parentRef: statusParentRef(parent.parentRef),
        controllerName,
        conditions: [
          ...conditionsOf(parent, findings, self.generation),
          ...rejectedConditions(self.ref, self.generation, read),
        ],
      })),
    },
  }
}

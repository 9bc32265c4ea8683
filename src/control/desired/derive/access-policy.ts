/**
 * Compiles XAccessPolicies (kube-agentic-networking 0.1), which say who may use which methods and tools of MCP, to the
 * policy `traffic.access`. If one cannot be applied, requests to its targets fail.
 */
import { compileFilter } from '../../../gateway/policies/ext-auth/filter.ts'
import { findPolicy } from '../../../gateway/policies/registry.ts'
import { canonicalJson } from '../../../ground/base/canonical.ts'
import { agenticGroup, controllerName, gatewayGroup } from '../../../ground/model/api-names.ts'
import type { DecidedCondition } from '../../../ground/model/conditions.ts'
import { compareAge, gatewayRef, objectKey } from '../../../ground/model/names.ts'
import { withPolicyKind } from '../../../ground/model/policy-kind.ts'
import type { PolicyResource, PolicyTarget } from '../../../ground/model/resources.ts'
import type { AccessPolicySpec } from '../../api/access-policy.ts'
import { conditionFalse, conditionOf, type Failure, joinFailures } from '../conditions.ts'
import type { Derived, Reader, Stage } from '../graph.ts'
import type { IndexDefinition } from '../object-indexes.ts'
import { type ObjectState, problemsText } from '../object-state.ts'
import { specOf } from '../specs.ts'
import { compileRules } from './access-rules.ts'
import { policyResource } from './compile-policy.ts'
import { reachOf } from './policy.ts'
import {
  groupOfTarget,
  type ResolvedTarget,
  resolveTargets,
  sectionProblem,
  targetKindProblem,
} from './policy-targets.ts'
import { referencesFrom } from './referenced-objects.ts'
import { resolveBackend } from './references.ts'
import { rejectedConditions } from './rejected.ts'

type TargetReference = AccessPolicySpec['targetRefs'][number]

const field = { section: 'traffic', field: 'access', phase: 'PostRouting' } as const

const targetName = (namespace: string, { kind, name, sectionName = '' }: TargetReference) =>
  `${kind}/${namespace}/${name}#${sectionName}`

/** Index of valid policies with action ExternalAuth, by target. */
export const externalAuthTargets: IndexDefinition = {
  name: 'external-auth-targets',
  kinds: ['XAccessPolicy'],
  keys: ({ object, ref }) => {
    if (object === undefined) return []
    const { action, targetRefs } = specOf<'XAccessPolicy'>(object)
    return action === 'Allow' ? [] : targetRefs.map((one) => targetName(ref.namespace, one))
  },
}

interface Compiled {
  /** The AccessConfig as canonical JSON; `null` if requests must be refused. */
  readonly config: string
  readonly unenforceable: string | undefined
  /** Why the policy is not accepted, for all targets. */
  readonly failure: Failure | undefined
  readonly refs: Failure | undefined
}

function compile({ ref }: ObjectState, spec: AccessPolicySpec, read: Reader): Compiled {
  const { rules, action } = spec
  const { expressions, failures } = compileRules(rules ?? [], ref.namespace)
  const matching = rules === undefined || rules.length === 0 ? {} : { rules: expressions }
  const service = action === 'ExternalAuth' ? compileService(ref.namespace, spec, read) : undefined
  const failure = joinFailures([...failures, ...(service?.failure ? [service.failure] : [])])
  const refs = service?.refs
  const unenforceable = [failure?.message, refs?.message].filter(Boolean).join('; ')
  if (unenforceable !== '') return { config: 'null', unenforceable, failure, refs }
  const config = canonicalJson({ ...matching, ...(service && { extAuth: service.config }) })
  return { config, unenforceable: undefined, failure, refs }
}

function compileService(namespace: string, { externalAuth }: AccessPolicySpec, read: Reader) {
  // The schema requires it with this action.
  if (externalAuth === undefined) return undefined
  const from = { group: agenticGroup, kind: 'XAccessPolicy', namespace }
  const { target, failure: refs } = resolveBackend(externalAuth.backendRef, from, read)
  const backend = () => refs?.message ?? target
  const references = { ...referencesFrom(namespace, read), backend }
  const { config, problems } = compileFilter(externalAuth, references)
  const found = refs === undefined ? problems : []
  const failure = joinFailures(
    found.map(({ path, message }) => ({
      reason: 'Invalid',
      message: `spec.externalAuth.${path}: ${message}`,
    })),
  )
  return { config, failure, refs }
}

interface CheckedTarget {
  readonly reference: TargetReference
  readonly resolved: ResolvedTarget
  /** Gateways that have an entry in the status for the target. */
  readonly gateways: readonly string[]
  readonly failure: Failure | undefined
}

function checkTargets(self: ObjectState, spec: AccessPolicySpec, read: Reader): CheckedTarget[] {
  return spec.targetRefs.flatMap((reference) => {
    const [resolved] = resolveTargets({ targetRefs: [reference] }, self.ref.namespace, read)
    const { sectionName: _, ...whole } = reference
    const [owner] = resolveTargets({ targetRefs: [whole] }, self.ref.namespace, read)
    if (resolved === undefined || owner === undefined) return []
    const failure = targetFailure(self, spec, reference, resolved, read)
    return [{ reference, resolved, gateways: owner.gateways, failure }]
  })
}

function targetFailure(
  self: ObjectState,
  { action }: AccessPolicySpec,
  reference: TargetReference,
  { target, exists, problem }: ResolvedTarget,
  read: Reader,
): Failure | undefined {
  const unsupported = targetKindProblem(reference) ?? sectionProblem('traffic', target)
  if (unsupported !== undefined) {
    const message = `${reference.kind} of group "${reference.group}" cannot be targeted; use Gateway, ListenerSet, HTTPRoute or GRPCRoute`
    return { reason: 'Invalid', message }
  }
  if (!exists && problem !== undefined) return { reason: 'TargetNotFound', ...problem }
  if (action === 'Allow') return undefined
  const older = olderPolicy(self, reference, read)
  if (older === undefined) return undefined
  const message = `${objectKey(target)} already has the older ExternalAuth policy ${older}; only one is allowed`
  return { reason: 'LimitPerTargetExceeded', message }
}

/** Returns the oldest ExternalAuth policy of the target, if it is older than `self`. */
function olderPolicy(self: ObjectState, reference: TargetReference, read: Reader) {
  const own = { ...self.age, ...self.ref }
  const [oldest] = read
    .index(externalAuthTargets.name, targetName(self.ref.namespace, reference))
    .map(({ age, ref }) => ({ ...age, ...ref }))
    .sort(compareAge)
  if (oldest === undefined || compareAge(oldest, own) >= 0) return undefined
  return `${oldest.namespace}/${oldest.name}`
}

function resourceFor(
  self: ObjectState,
  target: PolicyTarget,
  { config, unenforceable }: Pick<Compiled, 'config' | 'unenforceable'>,
): PolicyResource {
  const configVersion = findPolicy(field.section, field.field)?.configVersion ?? 0
  const owner = { owner: self.ref, age: self.age, ...field }
  const resource = policyResource(owner, { config, configVersion, unenforceable }, target)
  return withPolicyKind(resource, 'XAccessPolicy')
}

interface Ancestor {
  readonly ref: object
  readonly failures: readonly Failure[]
  /** Whether all targets of the ancestor fail. */
  readonly failsEverywhere: boolean
}

/** The Gateways of the targets, and the targets that do not exist or cannot be targeted. */
function ancestorsOf(namespace: string, checked: readonly CheckedTarget[]): Ancestor[] {
  const gateways = [...new Set(checked.flatMap((one) => one.gateways))].sort()
  const reached = gateways.map((gateway) => {
    const here = checked.filter((one) => one.gateways.includes(gateway))
    const failures = here.flatMap(({ failure }) => failure ?? [])
    const ref = { group: gatewayGroup, ...gatewayRef(gateway) }
    return { ref, failures, failsEverywhere: failures.length === here.length }
  })
  // The object of another controller has no failure here, and no entry.
  const missing = checked.flatMap(({ reference, gateways: none, failure }): Ancestor[] => {
    if (none.length > 0 || failure === undefined) return []
    const { group, kind, name } = reference
    return [{ ref: { group, kind, namespace, name }, failures: [failure], failsEverywhere: true }]
  })
  return [...reached, ...missing].slice(0, 16)
}

function statusOf(
  self: ObjectState,
  checked: readonly CheckedTarget[],
  { failure, refs }: Compiled,
  read: Reader,
) {
  const rejected = rejectedConditions(self.ref, self.generation, read)
  return {
    ancestors: ancestorsOf(self.ref.namespace, checked).map(
      ({ ref, failures, failsEverywhere }) => {
        const here = joinFailures(failures)
        const refused = failure ?? (failsEverywhere ? here : undefined)
        const conditions: readonly DecidedCondition[] = [
          conditionOf('Accepted', refused, 'Accepted', self.generation, here?.message),
          conditionOf('ResolvedRefs', refs, 'ResolvedRefs', self.generation),
          ...rejected,
        ]
        return { ancestorRef: ref, controllerName, conditions }
      },
    ),
  }
}

/** A policy that never had a valid version: requests to its targets, as far as these can be read, are refused. */
function refusedPolicy(self: ObjectState, read: Reader): Derived {
  const { refused } = self
  if (refused === undefined) return {}
  const message = problemsText(refused)
  const targetRefs = refused.targets.flatMap(({ kind, name, sectionName }) =>
    name === undefined
      ? []
      : [{ group: groupOfTarget(kind), kind, name, ...(sectionName && { sectionName }) }],
  )
  const targets = resolveTargets({ targetRefs }, self.ref.namespace, read)
  const why = `XAccessPolicy ${self.ref.namespace}/${self.ref.name} is invalid: ${message}`
  const gateways = [...new Set(targets.flatMap((one) => one.gateways))].sort()
  return {
    resources: targets
      .filter(isProtectable)
      .map(({ target }) => resourceFor(self, target, { config: 'null', unenforceable: why })),
    status: {
      ancestors: gateways.map((gateway) => ({
        ancestorRef: { group: gatewayGroup, ...gatewayRef(gateway) },
        controllerName,
        conditions: [conditionFalse('Accepted', 'Invalid', refused.generation, message)],
      })),
    },
  }
}

const isProtectable = ({ target, exists }: ResolvedTarget): boolean =>
  exists && sectionProblem('traffic', target) === undefined

export const accessPolicyStage: Stage = {
  name: 'access-policy',
  kinds: ['XAccessPolicy'],
  derive(self: ObjectState, read: Reader): Derived {
    if (self.object === undefined) return refusedPolicy(self, read)
    const spec = specOf<'XAccessPolicy'>(self.object)
    const compiled = compile(self, spec, read)
    const checked = checkTargets(self, spec, read)
    const resources = checked
      .filter(({ failure, resolved }) => failure === undefined && isProtectable(resolved))
      .map(({ resolved }) => resourceFor(self, resolved.target, compiled))
    const targets = checked.map(({ resolved }) => resolved)
    return {
      resources,
      status: statusOf(self, checked, compiled, read),
      contributions: reachOf(resources, targets),
    }
  },
}

/** GatewayPolicy: one wire resource per field and target; conditions per Gateway that it reaches. */
import type { DecidedCondition } from '../../model/conditions.ts'
import { compareText } from '../../model/names.ts'
import type {
  PolicyPhase,
  PolicyResource,
  PolicySection,
  PolicyTarget,
} from '../../model/resources.ts'
import { findPolicy } from '../../policies/registry.ts'
import { conditionFalse, conditionTrue } from '../conditions.ts'
import type { Derived, Reader, Stage } from '../graph.ts'
import type { ObjectState, Refusal } from '../object-state.ts'
import { controllerName, gatewayGroup, ownGroup, type PolicySpec, specOf } from '../shapes.ts'
import {
  type CompiledField,
  compileField,
  type Finding,
  type PolicyField,
  policyResource,
} from './compile-policy.ts'
import {
  closingField,
  type ResolvedTarget,
  resolveTargets,
  sectionProblem,
} from './policy-targets.ts'

const sections: readonly PolicySection[] = ['frontend', 'traffic', 'backend']

/** Fields of a section that are no policies of their own. */
const settings = new Set(['phase'])

function fieldsOf(self: ObjectState, spec: PolicySpec): PolicyField[] {
  const phase: PolicyPhase = spec.traffic?.phase === 'PreRouting' ? 'PreRouting' : 'PostRouting'
  return sections.flatMap((section) =>
    Object.entries(spec[section] ?? {})
      .filter(([field, value]) => value !== undefined && !settings.has(field))
      .sort(([a], [b]) => compareText(a, b))
      .map(([field, value]) => ({
        owner: self.ref,
        age: self.age,
        section,
        field,
        phase: section === 'traffic' ? phase : 'PostRouting',
        path: `spec.${section}.${field}`,
        spec: value,
      })),
  )
}

/** Why a field has no effect on a target, though both are fine by themselves. */
function placement(
  field: PolicyField,
  { definition }: CompiledField,
  { target }: ResolvedTarget,
): Finding | undefined {
  // A protection in a place where it cannot work protects nobody.
  const severity = definition?.security === false ? 'ineffective' : 'closed'
  const forbidden = sectionProblem(field.section, target)
  if (forbidden !== undefined) return { severity, message: forbidden }
  if (field.phase === 'PreRouting') {
    if (target.kind !== 'Gateway' && target.kind !== 'ListenerSet') {
      const message = `phase PreRouting needs a Gateway, a listener or a ListenerSet as its target, not a ${target.kind}`
      return { severity, message }
    }
    if (definition?.preRouting === false) {
      return { severity: 'ineffective', message: `${field.path} does not run in phase PreRouting` }
    }
  }
  if (definition?.effectiveOn !== undefined && !definition.effectiveOn.includes(target.kind)) {
    const message = `${field.path} is ignored on a ${target.kind}; it applies to ${definition.effectiveOn.join(', ')} only`
    return { severity: 'note', message }
  }
  return undefined
}

interface Translation {
  readonly resources: readonly PolicyResource[]
  readonly findings: readonly Finding[]
  /** Is there a field that has an effect, whatever becomes of the targets? */
  readonly effective: boolean
}

function translate(
  fields: readonly PolicyField[],
  targets: readonly ResolvedTarget[],
  read: Reader,
): Translation {
  const resources = new Map<string, PolicyResource>()
  const findings: Finding[] = []
  let effective = false
  // What closes a place goes before what would open it under the same key.
  const put = (resource: PolicyResource) => {
    if (resources.get(resource.key)?.unenforceable === undefined) {
      resources.set(resource.key, resource)
    }
  }
  for (const field of fields) {
    const compiled = compileField(field, read)
    findings.push(...compiled.findings)
    const misplaced = targets.map((resolved) => placement(field, compiled, resolved))
    findings.push(...misplaced.filter((finding) => finding !== undefined))
    effective ||= compiled.effective && misplaced.some((finding) => finding === undefined)
    // One that is merely not attached yet will be covered from the moment when it is.
    targets.forEach(({ target, exists }, position) => {
      const finding = misplaced[position]
      if (!exists) return
      if (finding?.severity === 'closed') put(closingResource(field, target, finding.message))
      else if (finding === undefined && compiled.effective)
        put(policyResource(field, compiled, target))
    })
  }
  if (fields.length === 0) {
    findings.push({ severity: 'note', message: 'the policy sets nothing' })
    effective = true
  }
  return { resources: [...resources.values()], findings: uniqueFindings(findings), effective }
}

/** Stands in for a protection that cannot be enforced: every request at the target is refused. */
function closingResource(
  { owner, age }: Pick<PolicyField, 'owner' | 'age'>,
  target: PolicyTarget,
  unenforceable: string,
): PolicyResource {
  const { section, field } = closingField(target.kind)
  return policyResource(
    { owner, age, section, field, phase: 'PostRouting' },
    { config: 'null', configVersion: 0, unenforceable },
    target,
  )
}

function uniqueFindings(findings: readonly Finding[]): Finding[] {
  return [...new Map(findings.map((finding) => [finding.message, finding])).values()]
}

function acceptedCondition(
  { effective, findings }: Translation,
  generation: number,
): DecidedCondition {
  const message = findings.map((finding) => finding.message).join('; ')
  const has = (severity: Finding['severity']) => findings.some((f) => f.severity === severity)
  if (has('closed')) return conditionFalse('Accepted', 'Invalid', generation, message)
  if (!has('ineffective')) return conditionTrue('Accepted', 'Valid', generation, message)
  return effective
    ? conditionTrue('Accepted', 'PartiallyValid', generation, message)
    : conditionFalse('Accepted', 'Invalid', generation, message)
}

function attachedCondition(
  targets: readonly ResolvedTarget[],
  isAccepted: boolean,
  generation: number,
): DecidedCondition {
  const problems = targets.flatMap(({ problem }) => (problem === undefined ? [] : [problem]))
  if (problems.length > 0) {
    return conditionFalse('Attached', 'Pending', generation, problems.join('; '))
  }
  if (!isAccepted) {
    return conditionFalse('Attached', 'Pending', generation, 'the policy is not accepted')
  }
  return conditionTrue('Attached', 'Attached', generation)
}

const maxAncestors = 16

/** One entry per Gateway; an extra one names what could not be attached (Gateway API, GEP-713). */
function ancestorsOf(
  targets: readonly ResolvedTarget[],
  accepted: DecidedCondition,
  generation: number,
): unknown[] {
  const gateways = [...new Set(targets.flatMap((target) => target.gateways))].sort()
  const isAccepted = accepted.status === 'True'
  const entries: unknown[] = gateways.map((gateway) => {
    const [namespace = '', name = ''] = gateway.split('/')
    const here = targets.filter((target) => target.gateways.includes(gateway))
    return {
      ancestorRef: { group: gatewayGroup, kind: 'Gateway', namespace, name },
      controllerName,
      conditions: [accepted, attachedCondition(here, isAccepted, generation)],
    }
  })
  const lost = targets.filter(({ problem }) => problem !== undefined)
  const summarised =
    lost.length === 0 ? [] : [accepted, attachedCondition(lost, isAccepted, generation)]
  const room = maxAncestors - (lost.length > 0 || entries.length > maxAncestors ? 1 : 0)
  const omitted = entries.slice(room).length
  if (omitted > 0) {
    const message = `${omitted} more ancestors are not shown`
    summarised.push(conditionTrue('StatusSummarized', 'StatusSummary', generation, message))
  }
  if (summarised.length === 0) return entries
  return [...entries.slice(0, room), summary(summarised)]
}

/** The entry for what belongs to no Gateway, or has no room. */
function summary(conditions: readonly DecidedCondition[]): unknown {
  const ancestorRef = { group: ownGroup, kind: 'GatewayPolicy', name: 'StatusSummary' }
  return { ancestorRef, controllerName, conditions }
}

export const policyStage: Stage = {
  name: 'policy',
  kinds: ['GatewayPolicy'],
  derive(self: ObjectState, read: Reader): Derived {
    if (self.object === undefined) return refusedPolicy(self, read)
    const spec = specOf<PolicySpec>(self.object)
    const targets = resolveTargets(spec, self.ref.namespace, read)
    const translation = translate(fieldsOf(self, spec), targets, read)
    const accepted = acceptedCondition(translation, self.generation)
    const attached = attachedCondition(targets, accepted.status === 'True', self.generation)
    return {
      resources: translation.resources,
      status: {
        conditions: [accepted, attached],
        ancestors: ancestorsOf(targets, accepted, self.generation),
      },
    }
  },
}

/** Does the refused version set a protection, as far as can be read? Unknown counts as yes. */
function protects({ appliesTo }: Refusal): boolean {
  if (appliesTo.length === 0) return true
  return appliesTo.some((name) => {
    const [section = '', field = ''] = name.split('.')
    return findPolicy(section as PolicySection, field)?.security ?? true
  })
}

/**
 * A policy of which no version was ever valid. Where it was to protect something, what it names is
 * refused.
 */
function refusedPolicy(self: ObjectState, read: Reader): Derived {
  const { refused } = self
  if (refused === undefined) return {}
  const message = refused.problems
    .map((problem) => `${problem.path}: ${problem.message}`)
    .join('; ')
  const accepted = conditionFalse('Accepted', 'Invalid', refused.generation, message)
  const spec: PolicySpec = {
    targetRefs: refused.targets.flatMap(({ group = '', name, matchLabels: _labels, ...rest }) =>
      name === undefined ? [] : [{ ...rest, group, name }],
    ),
    targetSelectors: refused.targets.flatMap(({ group = '', matchLabels, name: _name, ...rest }) =>
      matchLabels === undefined ? [] : [{ ...rest, group, matchLabels }],
    ),
  }
  const targets = resolveTargets(spec, self.ref.namespace, read)
  const unenforceable = `GatewayPolicy ${self.ref.namespace}/${self.ref.name} is invalid`
  const covered = protects(refused) ? targets.filter(({ exists }) => exists) : []
  const attached = attachedCondition(targets, false, refused.generation)
  return {
    resources: covered.map(({ target }) =>
      closingResource({ owner: self.ref, age: self.age }, target, unenforceable),
    ),
    status: {
      conditions: [accepted, attached],
      ancestors: ancestorsOf(targets, accepted, refused.generation),
    },
  }
}

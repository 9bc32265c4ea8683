/** GatewayPolicy: derives one resource for proxies per field and target. */

import { findPolicy, policyRegistry } from '../../../gateway/policies/registry.ts'
import { eachDestinationOfConfig } from '../../../ground/model/destinations.ts'
import { invalidPolicyText } from '../../../ground/model/invalid-policies.ts'
import { compareText, objectKey } from '../../../ground/model/names.ts'
import {
  type PolicyPhase,
  type PolicyResource,
  type PolicySection,
  type PolicyTarget,
  policySections,
} from '../../../ground/model/resources.ts'
import type { GatewayPolicySpec } from '../../api/gateway-policy.ts'
import { findRouteKind } from '../../api/kinds.ts'
import { findBackendKind, kindOfPolicyField } from '../backend-kind.ts'
import { conditionFalse } from '../conditions.ts'
import type { Contribution, Derived, Reader, Stage } from '../graph.ts'
import { type ObjectState, problemsText, type RefusedVersion } from '../object-state.ts'
import { specOf } from '../specs.ts'
import {
  type CompiledField,
  compileField,
  type PolicyField,
  policyResource,
} from './compile-policy.ts'
import { endpointNote } from './endpoint-fields.ts'
import type { Finding } from './finding.ts'
import { claimsOf, contributionsOf } from './policy-conflicts.ts'
import { acceptedCondition, type PolicyView } from './policy-status.ts'
import {
  closingFields,
  groupOfTarget,
  phaseProblem,
  type ResolvedTarget,
  reachByPolicy,
  resolveTargets,
  sectionProblem,
} from './policy-targets.ts'

/** Fields of a section that are settings of the whole section, not policies. */
const settings = new Set(['phase'])

function fieldsOf(self: ObjectState, spec: GatewayPolicySpec): PolicyField[] {
  const phase: PolicyPhase = spec.traffic?.phase === 'PreRouting' ? 'PreRouting' : 'PostRouting'
  return policySections.flatMap((section) =>
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

/** Fields of the section `backend` that apply to connections without HTTP. */
const streamFields = new Set(['tcp', 'tls'])

const carriesConnections = (kind: string) => findRouteKind(kind)?.carries === 'tcp'

/** Why a field has no effect on a target, although field and target are valid. */
function checkPlacement(
  field: PolicyField,
  { definition }: CompiledField,
  { target }: ResolvedTarget,
  read: Reader,
): Finding | undefined {
  // A security field on a wrong target must close that target. Fields of `frontend` let nothing
  // through: if they are ignored, the safe defaults of the Gateway apply.
  const isHarmless = definition?.security === false || field.section === 'frontend'
  const severity = isHarmless ? 'ineffective' : 'closed'
  const forbidden = sectionProblem(field.section, target)
  if (forbidden !== undefined) return { severity, message: forbidden }
  if (field.phase === 'PreRouting') {
    const early = phaseProblem(field.phase, target.kind)
    if (early !== undefined) return { severity, message: early }
    if (definition?.preRouting === false) {
      return { severity: 'ineffective', message: `${field.path} does not run in phase PreRouting` }
    }
  }
  if (
    carriesConnections(target.kind) &&
    field.section === 'backend' &&
    !streamFields.has(field.field)
  ) {
    const message = `${field.path} is ignored on a ${target.kind}; only backend.tcp and backend.tls apply to connections`
    return { severity: 'note', message }
  }
  if (field.section === 'backend' && isForOtherType(field.field, target, read)) {
    const message = `${field.path} is ignored on ${target.kind} ${target.namespace}/${target.name}, which is of another type`
    return { severity: 'note', message }
  }
  if (definition?.effectiveOn !== undefined && !definition.effectiveOn.includes(target.kind)) {
    const message = `${field.path} is ignored on a ${target.kind}; it applies to ${definition.effectiveOn.join(', ')} only`
    return { severity: 'note', message }
  }
  return undefined
}

/** Notes about parts of a field that have no effect on a target, where the others do. */
function endpointNotes(field: PolicyField, target: PolicyTarget, read: Reader): Finding[] {
  const message =
    field.section === 'backend' ? endpointNote(field, backendType(target, read)) : undefined
  return message === undefined ? [] : [{ severity: 'note', message }]
}

/** The type of a backend that a policy targets; undefined if the target is another object. */
function backendType(target: PolicyTarget, read: Reader): string | undefined {
  if (target.kind === 'InferencePool') return 'inferencePool'
  if (target.kind === 'AgentgatewayModel') return 'ai'
  return target.kind === 'GatewayBackend'
    ? findBackendKind(target, read)?.definition.field
    : undefined
}

/** Whether the field applies only to another kind of backend. */
function isForOtherType(field: string, target: PolicyTarget, read: Reader): boolean {
  const kind = kindOfPolicyField(field)
  if (kind === undefined) return false
  if (target.kind === 'Service') return kind.policy?.worksOnServices === false
  if (target.kind !== 'GatewayBackend') return false
  const backend = findBackendKind(target, read)
  return backend !== undefined && backend.definition !== kind
}

interface Translation {
  readonly resources: readonly PolicyResource[]
  readonly findings: readonly Finding[]
  /** Whether any field works on at least one target, even if that does not exist yet. */
  readonly working: boolean
}

function translate(
  fields: readonly PolicyField[],
  targets: readonly ResolvedTarget[],
  read: Reader,
): Translation {
  const resources = new Map<string, PolicyResource>()
  const findings: Finding[] = []
  let working = false
  // A resource that closes a target is not overwritten by one with the same key that would open it.
  const put = (resource: PolicyResource) => {
    if (resources.get(resource.key)?.unenforceable === undefined) {
      resources.set(resource.key, resource)
    }
  }
  for (const field of fields) {
    const compiled = compileField(field, read)
    findings.push(...compiled.findings)
    const misplaced = targets.map((resolved) => checkPlacement(field, compiled, resolved, read))
    findings.push(...misplaced.filter((finding) => finding !== undefined))
    findings.push(...targets.flatMap(({ target }) => endpointNotes(field, target, read)))
    working ||= isWorking(compiled) && misplaced.some((finding) => finding === undefined)
    // A target that exists but affects no Gateway yet gets its resource in advance.
    targets.forEach(({ target, exists }, position) => {
      const finding = misplaced[position]
      if (!exists) return
      if (finding?.severity === 'closed')
        closingResources(field, target, finding.message, []).forEach(put)
      else if (finding === undefined && compiled.effective)
        put(policyResource(field, compiled, target))
    })
  }
  if (fields.length === 0) {
    findings.push({ severity: 'note', message: 'the policy sets nothing' })
    working = true
  }
  return { resources: [...resources.values()], findings: uniqueFindings(findings), working }
}

/** Whether the field has an effect and no security problem. */
function isWorking({ effective, findings }: CompiledField): boolean {
  return effective && findings.every(({ severity }) => severity !== 'closed')
}

/** Resources for a security field that cannot be enforced: all requests to the target are refused. */
function closingResources(
  { owner, age }: Pick<PolicyField, 'owner' | 'age'>,
  target: PolicyTarget,
  unenforceable: string,
  broken: readonly string[],
): PolicyResource[] {
  const nothing = { config: 'null', configVersion: 0, unenforceable }
  return closingFields(target.kind, broken).map((place) =>
    policyResource({ owner, age, ...place, phase: 'PostRouting' }, nothing, target),
  )
}

function uniqueFindings(findings: readonly Finding[]): Finding[] {
  return [...new Map(findings.map((finding) => [finding.message, finding])).values()]
}

/** The status is derived by a later stage, which also knows the claims of other policies. */
function outcome(resources: readonly PolicyResource[], view: Omit<PolicyView, 'claims'>): Derived {
  const claims = claimsOf(resources)
  const value: PolicyView = { ...view, claims }
  const contributions = [...contributionsOf(claims), ...reachOf(resources, view.targets)]
  return { resources, value, contributions }
}

/** Contributes that the Gateways of a policy's targets reach the servers that the policy calls. */
export function reachOf(
  resources: readonly PolicyResource[],
  targets: readonly ResolvedTarget[],
): Contribution[] {
  const gateways = new Map(targets.map((one) => [objectKey(one.target), one.gateways]))
  const contributions = new Map<string, Contribution>()
  for (const { config, target } of resources) {
    eachDestinationOfConfig(config, (ref) => {
      for (const gateway of gateways.get(objectKey(target)) ?? []) {
        const key = objectKey(ref)
        contributions.set(`${key} ${gateway}`, [reachByPolicy, key, gateway])
      }
    })
  }
  return [...contributions.values()]
}

export const policyStage: Stage = {
  name: 'policy',
  kinds: ['GatewayPolicy'],
  derive(self: ObjectState, read: Reader): Derived {
    if (self.object === undefined) return refusedPolicy(self, read)
    const spec = specOf<'GatewayPolicy'>(self.object)
    const targets = resolveTargets(spec, self.ref.namespace, read)
    const { resources, findings, working } = translate(fieldsOf(self, spec), targets, read)
    const accepted = acceptedCondition(working, findings, self.generation)
    return outcome(resources, { accepted, targets })
  },
}

/** Whether the refused version sets a security field, as far as can be read. If unknown, assumes that it does. */
function protects({ appliesTo }: RefusedVersion): boolean {
  return appliesTo.length === 0 || appliesTo.some((name) => definitionOf(name)?.security ?? true)
}

function definitionOf(name: string) {
  const [section = '', field = ''] = name.split('.')
  return findPolicy(section as PolicySection, field)
}

const backendProtections = policyRegistry
  .filter(({ section, security }) => section === 'backend' && security)
  .map(({ field }) => field)

/** Backend security fields of the refused version; all of them if it has unknown fields. */
function brokenFields({ appliesTo }: RefusedVersion): readonly string[] {
  const found = appliesTo.map(definitionOf)
  if (found.length === 0 || found.includes(undefined)) return backendProtections
  return backendProtections.filter((field) => appliesTo.includes(`backend.${field}`))
}

/**
 * A policy that never had a valid version. If it should have protected something, requests to its
 * targets are refused.
 */
function refusedPolicy(self: ObjectState, read: Reader): Derived {
  const { refused } = self
  if (refused === undefined) return {}
  const message = problemsText(refused)
  const accepted = conditionFalse('Accepted', 'Invalid', refused.generation, message)
  const spec: GatewayPolicySpec = {
    targetRefs: refused.targets.flatMap(({ name, matchLabels: _labels, ...rest }) =>
      name === undefined ? [] : [{ ...rest, group: groupOfTarget(rest.kind), name }],
    ),
    targetSelectors: refused.targets.flatMap(({ matchLabels, name: _name, ...rest }) =>
      matchLabels === undefined ? [] : [{ ...rest, group: groupOfTarget(rest.kind), matchLabels }],
    ),
  }
  const targets = resolveTargets(spec, self.ref.namespace, read)
  const unenforceable = invalidPolicyText(self.ref, message)
  const covered = protects(refused) ? targets.filter(({ exists }) => exists) : []
  const broken = brokenFields(refused)
  const resources = covered.flatMap(({ target }) =>
    closingResources({ owner: self.ref, age: self.age }, target, unenforceable, broken),
  )
  return outcome(resources, { accepted, targets })
}

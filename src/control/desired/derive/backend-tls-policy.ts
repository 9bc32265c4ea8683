/**
 * BackendTLSPolicy (Gateway API 1.6): TLS to Services and GatewayBackends, compiled to the field `tls`
 * of backend policies. If a required setting cannot be applied, all requests to its targets fail.
 */

import { findPolicy } from '../../../gateway/policies/registry.ts'
import { canonicalJson } from '../../../ground/base/canonical.ts'
import {
  controllerName,
  gatewayGroup,
  inferenceGroup,
  ownGroup,
} from '../../../ground/model/api-names.ts'
import { authoritiesOf } from '../../../ground/model/certificates.ts'
import type { DecidedCondition } from '../../../ground/model/conditions.ts'
import { compareAge, gatewayRef, objectKey } from '../../../ground/model/names.ts'
import { withPolicyKind } from '../../../ground/model/policy-kind.ts'
import type { PolicyResource, PolicyTarget } from '../../../ground/model/resources.ts'
import type { BackendTlsPolicySpec } from '../../api/gateway-api/grants.ts'
import {
  conditionFalse,
  conditionOf,
  conditionTrue,
  type Failure,
  joinFailures,
  notOwn,
} from '../conditions.ts'
import type { Derived, Reader, Stage } from '../graph.ts'
import type { IndexDefinition } from '../object-indexes.ts'
import { type ObjectState, problemsText } from '../object-state.ts'
import { specOf } from '../specs.ts'
import { policyResource } from './compile-policy.ts'
import { type GatewayView, gatewayStage } from './gateway.ts'
import { reachingGateways, targetProblem } from './policy-targets.ts'
import { referencesFrom } from './referenced-objects.ts'

const targetGroups: Readonly<Record<string, string>> = {
  Service: '',
  GatewayBackend: ownGroup,
  InferencePool: inferenceGroup,
}

/** The targets of a policy; for a refused version, those that could be read. */
function targetsOf({ ref, object, refused }: ObjectState): (PolicyTarget & { group: string })[] {
  const named =
    object === undefined ? (refused?.targets ?? []) : specOf<'BackendTLSPolicy'>(object).targetRefs
  return named.flatMap(({ group = '', kind, name, sectionName: section }) => {
    if (name === undefined) return []
    return [{ group, kind, namespace: ref.namespace, name, ...(section && { section }) }]
  })
}

const targetName = (target: PolicyTarget) => `${objectKey(target)}#${target.section ?? ''}`

/** Index of valid BackendTLSPolicies by target, to find policies with the same target. */
export const backendTlsTargets: IndexDefinition = {
  name: 'backend-tls-targets',
  kinds: ['BackendTLSPolicy'],
  keys: (state) => (state.object === undefined ? [] : targetsOf(state).map(targetName)),
}

/** The oldest policy for the target, if it is older than `self`, which then does not apply to the target. */
function olderPolicy(self: ObjectState, target: PolicyTarget, read: Reader): string | undefined {
  const own = { ...self.age, ...self.ref }
  const [oldest] = read
    .index(backendTlsTargets.name, targetName(target))
    .map(({ age, ref }) => ({ ...age, ...ref }))
    .sort(compareAge)
  if (oldest === undefined || compareAge(oldest, own) >= 0) return undefined
  return `${oldest.namespace}/${oldest.name}`
}

interface Verification {
  /** The BackendTlsConfig as canonical JSON. */
  readonly config: string
  /** Set if all requests to the targets must fail. */
  readonly blocking: Failure | undefined
  readonly refs: Failure | undefined
}

function verificationOf(self: ObjectState, spec: BackendTlsPolicySpec, read: Reader): Verification {
  const { hostname, subjectAltNames = [], wellKnownCACertificates } = spec.validation
  const { authorities, refs, blocking } = authoritiesOfPolicy(self, spec, read)
  const names = subjectAltNames.flatMap(({ hostname: host, uri }) => host ?? uri ?? [])
  const config = {
    verify: 'full',
    takesGatewayCertificate: true,
    serverName: hostname,
    names: names.length > 0 ? names : [hostname],
    ...(authorities !== undefined && { authorities }),
  }
  const message = settingProblem(wellKnownCACertificates, Object.keys(spec.options ?? {}))
  const unsupported = message === undefined ? undefined : { reason: 'Invalid', message }
  return { config: canonicalJson(config), blocking: blocking ?? unsupported, refs }
}

function settingProblem(wellKnown: string | undefined, options: string[]): string | undefined {
  if (wellKnown !== undefined && wellKnown !== 'System') {
    return `spec.validation.wellKnownCACertificates ${wellKnown} is not known; it may be System`
  }
  if (options.length === 0) return undefined
  return `spec.options are not supported: ${options.sort().join(', ')}`
}

function authoritiesOfPolicy(
  self: ObjectState,
  { validation: { caCertificateRefs = [] } }: BackendTlsPolicySpec,
  read: Reader,
): { authorities?: string; refs: Failure | undefined; blocking: Failure | undefined } {
  if (caCertificateRefs.length === 0) return { refs: undefined, blocking: undefined }
  const references = referencesFrom(self.ref.namespace, read)
  const found: string[] = []
  const failures: Failure[] = []
  caCertificateRefs.forEach(({ group, kind, name }, index) => {
    const path = `spec.validation.caCertificateRefs[${index}]`
    if (group !== '' || kind !== 'ConfigMap') {
      const message = `${path}: ${kind} of group "${group}" is not supported; use a ConfigMap`
      failures.push({ reason: 'InvalidKind', message })
      return
    }
    const result = authoritiesOf(name, references)
    if ('authorities' in result) found.push(result.authorities)
    else {
      const message = `${path}: ${result.problem}`
      const { own } = result
      failures.push({ reason: 'InvalidCACertificateRef', message, ...(own && { own }) })
    }
  })
  const refs = joinFailures(failures)
  if (found.length > 0) return { authorities: found.join('\n'), refs, blocking: undefined }
  return { refs, blocking: refs && { ...refs, reason: 'NoValidCACertificate' } }
}

function resourceFor(
  self: ObjectState,
  { group: _, ...target }: PolicyTarget & { group: string },
  config: string,
  unenforceable: string | undefined,
): PolicyResource {
  const field = {
    owner: self.ref,
    age: self.age,
    section: 'backend',
    field: 'tls',
    phase: 'PostRouting',
  } as const
  const configVersion = findPolicy('backend', 'tls')?.configVersion ?? 0
  const resource = policyResource(field, { config, configVersion, unenforceable }, target)
  return withPolicyKind(resource, 'BackendTLSPolicy')
}

/** A policy that never had a valid version: requests to its targets, as far as these can be read, fail. */
function refusedPolicy(self: ObjectState, read: Reader): Derived {
  const { refused } = self
  if (refused === undefined) return {}
  const message = problemsText(refused)
  const targets = targetsOf(self)
  const conditions = [
    conditionFalse('Accepted', 'Invalid', refused.generation, message),
    conditionTrue('ResolvedRefs', 'ResolvedRefs', refused.generation),
  ]
  const why = `BackendTLSPolicy ${self.ref.namespace}/${self.ref.name} is invalid`
  return {
    resources: targets.map((target) => resourceFor(self, target, 'null', why)),
    status: {
      ancestors: reachedGateways(targets, read).map((gateway) => ancestor(gateway, conditions)),
    },
  }
}

function reachedGateways(targets: readonly PolicyTarget[], read: Reader): string[] {
  const gateways = targets.flatMap((target) => reachingGateways(target, read))
  return [...new Set(gateways)].sort()
}

function ancestor(gateway: string, conditions: readonly DecidedCondition[]): unknown {
  const ancestorRef = { group: gatewayGroup, ...gatewayRef(gateway) }
  return { ancestorRef, controllerName, conditions }
}

interface CheckedTarget {
  readonly target: PolicyTarget & { group: string }
  readonly failure: Failure | undefined
}

function checkTargets(self: ObjectState, read: Reader): CheckedTarget[] {
  return targetsOf(self).map((target) => {
    if (targetGroups[target.kind] !== target.group) {
      const message = `${target.kind} of group "${target.group}" cannot be targeted; use a Service or a GatewayBackend`
      return { target, failure: { reason: 'Invalid', message } }
    }
    const missing = targetProblem(target, read)
    if (missing !== undefined) {
      return { target, failure: { reason: 'TargetNotFound', ...missing } }
    }
    const older = olderPolicy(self, target, read)
    const { kind, namespace, name, section } = target
    const port = section === undefined ? '' : ` port ${section}`
    const where = `${kind} ${namespace}/${name}${port}`
    const message = `BackendTLSPolicy ${older} comes first (by age, then by name) on ${where}`
    return { target, failure: older === undefined ? undefined : { reason: 'Conflicted', message } }
  })
}

/** Conditions for one Gateway: failures of the policy itself, or of the targets that this Gateway reaches. */
function conditionsAt(
  gateway: string,
  checked: readonly CheckedTarget[],
  { blocking, refs }: Verification,
  generation: number,
  read: Reader,
): DecidedCondition[] {
  const here = checked.filter(({ target }) => reachingGateways(target, read).includes(gateway))
  const failures = here.flatMap(({ failure }) => (failure === undefined ? [] : [failure]))
  const view = read.value<GatewayView>(gatewayStage.name, gatewayRef(gateway))
  const unusable = view?.backendTls?.failure
  const failsEverywhere = failures.length === here.length
  const targetFailure = joinFailures(failures)
  const unaccepted = unusable && { reason: 'Invalid', message: unusable.message, ...notOwn }
  const failure = blocking ?? unaccepted ?? (failsEverywhere ? targetFailure : undefined)
  return [
    conditionOf('Accepted', failure, 'Accepted', generation, targetFailure?.message),
    conditionOf('ResolvedRefs', refs, 'ResolvedRefs', generation),
  ]
}

export const backendTlsPolicyStage: Stage = {
  name: 'backend-tls-policy',
  kinds: ['BackendTLSPolicy'],
  derive(self: ObjectState, read: Reader): Derived {
    if (self.object === undefined) return refusedPolicy(self, read)
    const spec = specOf<'BackendTLSPolicy'>(self.object)
    const verification = verificationOf(self, spec, read)
    const checked = checkTargets(self, read)
    const { blocking, config } = verification
    const applied = checked.filter(({ failure }) => failure === undefined)
    const targets = checked.map(({ target }) => target)
    const ancestors = reachedGateways(targets, read).map((gateway) =>
      ancestor(gateway, conditionsAt(gateway, checked, verification, self.generation, read)),
    )
    return {
      resources: applied.map(({ target }) =>
        resourceFor(self, target, blocking === undefined ? config : 'null', blocking?.message),
      ),
      status: { ancestors },
    }
  },
}

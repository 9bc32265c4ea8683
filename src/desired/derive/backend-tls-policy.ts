/**
 * BackendTLSPolicy (Gateway API 1.6): TLS to Services and GatewayBackends, as the field `tls` of
 * backend policies. What it asks for and cannot have closes the way to its targets.
 */
import type { BackendTlsPolicySpec } from '../../api/gateway-api/grants.ts'
import { controllerName, gatewayGroup, inferenceGroup, ownGroup } from '../../api/names.ts'
import { canonicalJson } from '../../base/canonical.ts'
import { authoritiesOf } from '../../model/certificates.ts'
import type { DecidedCondition } from '../../model/conditions.ts'
import { compareAge, type ObjectRef, objectKey } from '../../model/names.ts'
import type { PolicyResource, PolicyTarget } from '../../model/resources.ts'
import { findPolicy } from '../../policies/registry.ts'
import {
  allOwn,
  conditionFalse,
  conditionOf,
  conditionTrue,
  elsewhere,
  type Failure,
} from '../conditions.ts'
import type { Derived, IndexDefinition, Reader, Stage } from '../graph.ts'
import type { ObjectState } from '../object-state.ts'
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

/** What it targets; of a version that was refused, as far as that can be read. */
function targetsOf({ ref, object, refused }: ObjectState): (PolicyTarget & { group: string })[] {
  const named =
    object === undefined ? (refused?.targets ?? []) : specOf<'BackendTLSPolicy'>(object).targetRefs
  return named.flatMap(({ group = '', kind, name, sectionName }) =>
    name === undefined
      ? []
      : [
          {
            group,
            kind,
            namespace: ref.namespace,
            name,
            ...(sectionName !== undefined && { section: sectionName }),
          },
        ],
  )
}

const targetName = (target: PolicyTarget) => `${objectKey(target)}#${target.section ?? ''}`

/** Valid BackendTLSPolicies by target, so that each sees the others. */
export const backendTlsTargets: IndexDefinition = {
  name: 'backend-tls-targets',
  kinds: ['BackendTLSPolicy'],
  keys: (state) => (state.object === undefined ? [] : targetsOf(state).map(targetName)),
}

/** The oldest policy for the same target, if it is another one; then this one does not apply to it. */
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
  /** Canonical JSON of a BackendTlsConfig. */
  readonly config: string
  /** Why nothing can be reached at all. */
  readonly closed: Failure | undefined
  readonly refs: Failure | undefined
}

function verificationOf(self: ObjectState, spec: BackendTlsPolicySpec, read: Reader): Verification {
  const { hostname, subjectAltNames = [], wellKnownCACertificates } = spec.validation
  const { authorities, refs, closed } = authoritiesOfPolicy(self, spec, read)
  const names = subjectAltNames.flatMap(({ hostname: host, uri }) => host ?? uri ?? [])
  const config = {
    verify: 'full',
    takesGatewayCertificate: true,
    serverName: hostname,
    names: names.length > 0 ? names : [hostname],
    ...(authorities !== undefined && { authorities }),
  }
  const options = Object.keys(spec.options ?? {}).sort()
  const invalid = (message: string): Failure => ({ reason: 'Invalid', message })
  const unknown =
    wellKnownCACertificates !== undefined && wellKnownCACertificates !== 'System'
      ? invalid(
          `spec.validation.wellKnownCACertificates ${wellKnownCACertificates} is not known; it may be System`,
        )
      : undefined
  const unsupported =
    options.length > 0
      ? invalid(`spec.options are not supported: ${options.join(', ')}`)
      : undefined
  return { config: canonicalJson(config), closed: closed ?? unknown ?? unsupported, refs }
}

function authoritiesOfPolicy(
  self: ObjectState,
  { validation: { caCertificateRefs = [] } }: BackendTlsPolicySpec,
  read: Reader,
): { authorities?: string; refs: Failure | undefined; closed: Failure | undefined } {
  if (caCertificateRefs.length === 0) return { refs: undefined, closed: undefined }
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
  const message = failures.map((failure) => failure.message).join('; ')
  const [first] = failures
  return {
    ...(found.length > 0 && { authorities: found.join('\n') }),
    refs: first && { reason: first.reason, message, ...allOwn(failures) },
    closed:
      found.length > 0
        ? undefined
        : { reason: 'NoValidCACertificate', message, ...allOwn(failures) },
  }
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
  // A GatewayPolicy may have the same name.
  return { ...resource, key: resource.key.replace('policy/', 'policy/BackendTLSPolicy/') }
}

/** A version that was never valid: what it targets, as far as can be read, is not reached. */
function refusedPolicy(self: ObjectState, read: Reader): Derived {
  const { refused } = self
  if (refused === undefined) return {}
  const message = refused.problems.map(({ path, message }) => `${path}: ${message}`).join('; ')
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

/** Of `namespace/name`. */
function gatewayRef(gateway: string): ObjectRef {
  const [namespace = '', name = ''] = gateway.split('/')
  return { kind: 'Gateway', namespace, name }
}

function ancestor(gateway: string, conditions: readonly DecidedCondition[]): unknown {
  const ancestorRef = { group: gatewayGroup, ...gatewayRef(gateway) }
  return { ancestorRef, controllerName, conditions }
}

interface JudgedTarget {
  readonly target: PolicyTarget & { group: string }
  readonly failure: Failure | undefined
}

function judge(self: ObjectState, read: Reader): JudgedTarget[] {
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

/** What a Gateway is told: what is wrong with all, or with the targets that it reaches. */
function conditionsAt(
  gateway: string,
  judged: readonly JudgedTarget[],
  { closed, refs }: Verification,
  generation: number,
  read: Reader,
): DecidedCondition[] {
  const here = judged.filter(({ target }) => reachingGateways(target, read).includes(gateway))
  const failures = here.flatMap(({ failure }) => (failure === undefined ? [] : [failure]))
  const view = read.value<GatewayView>(gatewayStage.name, gatewayRef(gateway))
  const unusable = view?.backendTls?.failure
  const isNowhere = failures.length === here.length
  const message = failures.map((failure) => failure.message).join('; ')
  const own = unusable && { reason: 'Invalid', message: unusable.message, ...elsewhere }
  const failure =
    closed ??
    own ??
    (isNowhere && failures[0] ? { ...failures[0], message, ...allOwn(failures) } : undefined)
  return [
    conditionOf('Accepted', failure, 'Accepted', generation, message),
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
    const judged = judge(self, read)
    const { closed, config } = verification
    const applied = judged.filter(({ failure }) => failure === undefined)
    return {
      resources: applied.map(({ target }) =>
        closed === undefined
          ? resourceFor(self, target, config, undefined)
          : resourceFor(self, target, 'null', closed.message),
      ),
      status: {
        ancestors: reachedGateways(
          judged.map(({ target }) => target),
          read,
        ).map((gateway) =>
          ancestor(gateway, conditionsAt(gateway, judged, verification, self.generation, read)),
        ),
      },
    }
  },
}

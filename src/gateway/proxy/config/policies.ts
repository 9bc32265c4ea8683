/** Received policies. Each config is read once. The policies that apply at one place are merged on demand. */

import { createHash } from 'node:crypto'
import { problemOf } from '../../../ground/base/shape.ts'
import type { BudgetHost } from '../../../ground/exchange/budgets.ts'
import type { ClientSettings, ConnectionSettings } from '../../../ground/exchange/connection.ts'
import type { Callouts, SecretValues } from '../../../ground/exchange/exchange.ts'
import type { RateBucket, RateLimitSpec } from '../../../ground/exchange/rate-limits.ts'
import { standsForInvalidPolicy } from '../../../ground/model/invalid-policies.ts'
import { kindOfPolicy } from '../../../ground/model/policy-kind.ts'
import type { PolicyPhase, PolicyResource, PolicySection } from '../../../ground/model/resources.ts'
import { type ConditionalConfig, configsOf, isConditional } from '../../policies/conditional.ts'
import type { PolicyApply, PolicyDefinition, Step } from '../../policies/define.ts'
import { type Levels, mergePolicies, targetKey } from '../../policies/merge.ts'
import { findPolicy, policyName, policyRegistry } from '../../policies/registry.ts'
import { readsNames } from './header-references.ts'
import { bindVariants } from './variants.ts'

/** Services that policies may use. */
export interface PolicyServices {
  readonly callouts: Callouts
  /** Returns the rate-limit bucket of a name. Names are unique in the process. */
  readonly bucket: (name: string, spec: RateLimitSpec) => RateBucket
  /** Omitted in simulations, which enforce no budgets. */
  readonly budgets?: BudgetHost | undefined
  /** Returns the key that encrypts sessions; undefined until it has arrived. Omitted in simulations. */
  readonly sessionKey?: () => Uint8Array | undefined
  /** Says whether an address is that of a trusted proxy. If omitted, there is none. */
  readonly isTrustedProxy?: ((address: string) => boolean) | undefined
}

/** The default exports of every `apply.ts`, by `section.field`. */
export type PolicyAppliers = ReadonlyMap<string, PolicyApply<unknown>>

let loading: Promise<PolicyAppliers> | undefined

/** Loads them once for all gateways and simulations of this process. */
export function loadPolicyAppliers(): Promise<PolicyAppliers> {
  loading ??= load()
  return loading
}

async function load(): Promise<PolicyAppliers> {
  const loaded = new Map<string, PolicyApply<unknown>>()
  for (const { section, field, apply } of policyRegistry) {
    loaded.set(policyName(section, field), (await apply()).default)
  }
  return loaded
}

/** The policies that a step was made from. */
export interface StepOrigin {
  /** `section.field`, such as `traffic.authorization`. */
  readonly name: string
  /** Least specific first if several are combined. */
  readonly policies: readonly PolicyResource[]
}

const origins = new WeakMap<Step, StepOrigin>()

/** Returns where a step comes from; undefined if it comes from no policy. */
export const originOf = (step: Step): StepOrigin | undefined => origins.get(step)

/** Digest of the compiled policies of a step, in hex. Two steps with the same digest decide alike. */
export function configDigest({ policies }: StepOrigin): string {
  const hash = createHash('sha256')
  for (const { config } of policies) hash.update(config).update('\n')
  return hash.digest('hex').slice(0, 16)
}

/** Writes the object that a policy comes from as `Kind namespace/name`. */
export const policyText = (resource: PolicyResource): string =>
  `${kindOfPolicy(resource)} ${resource.policy.namespace}/${resource.policy.name}`

/** The merged policies of one place, ready to run. */
export interface BoundPolicies {
  /** Steps that do not respond, in order of execution. */
  readonly steps: readonly Step[]
  /** Steps that respond in place of a backend. */
  readonly directResponses: readonly Step[]
  /** Connection settings of backend policies. */
  readonly connection: ConnectionSettings
  /** Settings of frontend policies for client connections. */
  readonly client: ClientSettings
  /** Why all requests are refused; undefined if all policies can be enforced. */
  readonly closed?: string
  /** Set if requests are refused because the credential for the backend is missing. */
  readonly lacksCredential?: boolean
  /** Index of the first step that reads headers which name a message; -1 if none does. */
  readonly firstReader: number
}

/** Whether a policy that cannot be enforced should have added a credential. */
const isWithoutCredential = (policy: BoundPolicy | undefined): boolean =>
  policy?.resource.section === 'backend' &&
  policy.resource.field === 'auth' &&
  policy.resource.unenforceable !== undefined &&
  !standsForInvalidPolicy(policy.resource.unenforceable)

/** Why requests are refused: a policy that this version does not know, or the first that cannot be enforced. */
function closingOf(unknown: string | undefined, refusing: BoundPolicy | undefined) {
  const lacksCredential = unknown === undefined && isWithoutCredential(refusing)
  return { closed: unknown ?? refusing?.closed, lacksCredential }
}

const noSettings: ConnectionSettings = {}
const noClientSettings: ClientSettings = {}
export const noPolicies: BoundPolicies = {
  steps: [],
  directResponses: [],
  connection: noSettings,
  client: noClientSettings,
  firstReader: -1,
}

/** A policy with the result of reading its config. */
interface BoundPolicy {
  readonly resource: PolicyResource
  readonly config?: unknown
  readonly step?: Step
  readonly closed?: string
  /** Why the policy is ignored; only set if ignoring it is safe. */
  readonly ignoredBecause?: string
}

interface PolicyRefusal {
  readonly code: 'policy_unenforceable' | 'resource_partly_known'
  readonly message: string
}

export class PolicyIndex {
  readonly #appliers: PolicyAppliers
  readonly #services: PolicyServices
  readonly #secrets: SecretValues
  readonly #byKey = new Map<string, BoundPolicy>()
  readonly #byTarget = new Map<string, PolicyResource[]>()
  /** Keys of policies from a newer controller that this version does not know. They may protect something. */
  readonly #unknown = new Set<string>()
  /** Keys of policies with active health checks, and with session affinity. */
  readonly #checking = new Set<string>()
  readonly #affine = new Set<string>()
  /** Incremented by every change. Merged policies of an older generation are merged again. */
  generation = 0

  constructor(appliers: PolicyAppliers, services: PolicyServices, secrets: SecretValues) {
    this.#appliers = appliers
    this.#services = services
    this.#secrets = secrets
  }

  get hasActiveChecks(): boolean {
    return this.#checking.size > 0
  }

  get hasSessionAffinity(): boolean {
    return this.#affine.size > 0
  }

  /**
   * Stores a policy. Returns why it cannot be applied, if so. Requests are then refused rather than served
   * by its last good version, which may allow what the new version forbids. A policy that protects nothing
   * is ignored instead.
   */
  set(resource: PolicyResource): PolicyRefusal | undefined {
    this.remove(resource.key)
    const bound = this.#bind(resource)
    this.#byKey.set(resource.key, bound)
    const isKnown = findPolicy(resource.section, resource.field) !== undefined
    if (!isKnown && bound.ignoredBecause === undefined) this.#unknown.add(resource.key)
    const { health, sessionOf } = bound.step?.connection ?? {}
    if (health?.active !== undefined) this.#checking.add(resource.key)
    if (sessionOf !== undefined) this.#affine.add(resource.key)
    const target = targetKey(resource.target)
    const siblings = this.#byTarget.get(target)
    if (siblings === undefined) this.#byTarget.set(target, [resource])
    else siblings.push(resource)
    this.generation++
    if (bound.ignoredBecause !== undefined)
      return { code: 'resource_partly_known', message: bound.ignoredBecause }
    if (resource.unenforceable !== undefined || bound.closed === undefined) return undefined
    return { code: 'policy_unenforceable', message: bound.closed }
  }

  remove(key: string): void {
    const bound = this.#byKey.get(key)
    if (bound === undefined) return
    this.#byKey.delete(key)
    bound.step?.dispose?.()
    this.#unknown.delete(key)
    this.#checking.delete(key)
    this.#affine.delete(key)
    const target = targetKey(bound.resource.target)
    const left = this.#byTarget.get(target)?.filter((policy) => policy.key !== key) ?? []
    if (left.length === 0) this.#byTarget.delete(target)
    else this.#byTarget.set(target, left)
    this.generation++
  }

  /**
   * Merges the policies of one section that apply at these levels. If one of them cannot be enforced, the
   * result fails closed.
   */
  merge(section: PolicySection, phase: PolicyPhase, levels: Levels): BoundPolicies {
    if (this.#byKey.size === 0) return noPolicies
    const policiesOf = (target: string) => this.#byTarget.get(target) ?? []
    const found = mergePolicies(bySection[section], phase, levels, policiesOf)
    const unknown = this.#closedByUnknown(section, phase, levels)
    if (found.length === 0 && unknown === undefined) return noPolicies
    const steps: Step[] = []
    const directResponses: Step[] = []
    let connection = noSettings
    let client = noClientSettings
    let firstRefusing: BoundPolicy | undefined
    let firstReader = -1
    for (const { definition, policies } of found) {
      const bound = policies.flatMap(({ key }) => this.#byKey.get(key) ?? [])
      const refusing = bound.find((policy) => policy.closed !== undefined)
      firstRefusing ??= refusing
      // If any part of a policy cannot be enforced, none of its parts is run.
      const step = refusing === undefined ? this.#stepOf(definition, bound) : undefined
      if (step === undefined) continue
      if (step.connection !== undefined) connection = { ...connection, ...step.connection }
      if (step.client !== undefined) client = { ...client, ...step.client }
      if (firstReader < 0 && policies.some(({ config }) => readsNames(definition, config))) {
        firstReader = steps.length
      }
      ;(definition.answers === true ? directResponses : steps).push(step)
    }
    const closing = closingOf(unknown, firstRefusing)
    return { steps, directResponses, connection, client, ...closing, firstReader }
  }

  /**
   * Returns why the place is closed, if it has a policy that this version does not know. Such a policy may
   * protect something.
   */
  #closedByUnknown(section: PolicySection, phase: PolicyPhase, levels: Levels): string | undefined {
    if (this.#unknown.size === 0) return undefined
    for (const target of levels.flat()) {
      for (const policy of this.#byTarget.get(target) ?? []) {
        if (policy.section !== section || policy.phase !== phase) continue
        if (this.#unknown.has(policy.key)) return this.#byKey.get(policy.key)?.closed
      }
    }
    return undefined
  }

  #stepOf(definition: PolicyDefinition, bound: readonly BoundPolicy[]): Step | undefined {
    const name = policyName(definition.section, definition.field)
    const applier = this.#appliers.get(name)
    const [first] = bound
    if (applier === undefined || first === undefined) return undefined
    const isAlone = definition.merge === 'replace'
    const configs = bound.map(({ config }) => config)
    const step = isAlone ? first.step : this.#run(applier, configs, first.resource)
    if (step !== undefined && !origins.has(step)) {
      const policies = isAlone ? [first.resource] : bound.map(({ resource }) => resource)
      origins.set(step, { name, policies })
    }
    return step
  }

  #run(
    applier: PolicyApply<unknown>,
    config: unknown,
    { key, policy: owner }: PolicyResource,
    variant = '',
  ): Step {
    const { callouts, bucket, budgets, sessionKey, isTrustedProxy } = this.#services
    const policy = `${owner.namespace}/${owner.name}`
    const ownBucket = (name: string, spec: RateLimitSpec) =>
      bucket(`${key}${variant} ${name}`, spec)
    const policyBucket = (name: string, spec: RateLimitSpec) =>
      bucket(`policy ${policy}${variant} ${name}`, spec)
    const host = { bucket: ownBucket, policyBucket, policy, budgets, sessionKey, isTrustedProxy }
    return applier.bind(config, callouts, this.#secrets, host)
  }

  #choice(
    applier: PolicyApply<unknown>,
    config: ConditionalConfig,
    resource: PolicyResource,
  ): Step {
    const name = policyName(resource.section, resource.field)
    return bindVariants(config, name, (one, at) => {
      const step = this.#run(applier, one, resource, ` conditional[${at}]`)
      origins.set(step, { name, policies: [resource] })
      return step
    })
  }

  /**
   * Reads the config of a policy version once, so that the state of its step survives changes of other
   * policies.
   */
  #bind(resource: PolicyResource): BoundPolicy {
    const name = policyName(resource.section, resource.field)
    const { namespace, name: policy } = resource.policy
    const explain = (why: string) => `${name} of ${namespace}/${policy}: ${why}`
    const closed = (why: string): BoundPolicy => ({ resource, closed: explain(why) })
    const unknown = (why: string): BoundPolicy =>
      resource.dispensable === true
        ? { resource, ignoredBecause: `${explain(why)}; the policy is skipped` }
        : closed(why)
    if (resource.unenforceable !== undefined) return closed(resource.unenforceable)
    const definition = findPolicy(resource.section, resource.field)
    const applier = this.#appliers.get(name)
    if (definition === undefined || applier === undefined) {
      return unknown('this proxy does not know the policy')
    }
    if (resource.configVersion !== definition.configVersion) {
      return unknown(`this proxy does not know version ${resource.configVersion} of its form`)
    }
    try {
      const config: unknown = JSON.parse(resource.config)
      const problem = configsOf(config)
        .map((one) => problemOf(applier.shape, one))
        .find((one) => one !== undefined)
      if (problem !== undefined) return closed(`its compiled form is not valid: ${problem}`)
      if (isConditional(config))
        return { resource, config, step: this.#choice(applier, config, resource) }
      if (definition.merge === 'replace') {
        return { resource, config, step: this.#run(applier, config, resource) }
      }
      // The policy is bound together with others when they are merged. It is bound alone here to find errors
      // now.
      this.#run(applier, [config], resource).dispose?.()
      return { resource, config }
    } catch (error) {
      return closed(`its compiled form cannot be used: ${String(error)}`)
    }
  }
}

const bySection = {
  frontend: policyRegistry.filter(({ section }) => section === 'frontend'),
  traffic: policyRegistry.filter(({ section }) => section === 'traffic'),
  backend: policyRegistry.filter(({ section }) => section === 'backend'),
} satisfies Record<PolicySection, readonly PolicyDefinition[]>

/** Policies as they arrived, bound to their configs once, and merged on demand. */
import { problemOf } from '../../base/shape.ts'
import type { ClientSettings, ConnectionSettings } from '../../exchange/connection.ts'
import type { Callouts, SecretValues } from '../../exchange/exchange.ts'
import type { RateBucket, RateLimitSpec } from '../../exchange/rate-limits.ts'
import type { PolicyPhase, PolicyResource, PolicySection } from '../../model/resources.ts'
import type { PolicyApply, PolicyDefinition, Step } from '../../policies/define.ts'
import { type Levels, mergePolicies, targetKey } from '../../policies/merge.ts'
import { findPolicy, policyName, policyRegistry } from '../../policies/registry.ts'

/** What policies may use besides their configs and secrets. */
export interface PolicyServices {
  readonly callouts: Callouts
  /** A bucket by a name that is unique in the proxy. */
  readonly bucket: (name: string, spec: RateLimitSpec) => RateBucket
}

/** What every `apply.ts` exports, by `section.field`; loaded once at start. */
export type PolicyAppliers = ReadonlyMap<string, PolicyApply<unknown>>

export async function loadPolicyAppliers(): Promise<PolicyAppliers> {
  const loaded = new Map<string, PolicyApply<unknown>>()
  for (const { section, field, apply } of policyRegistry) {
    if (apply === undefined) continue
    const { default: applier } = await apply()
    loaded.set(policyName(section, field), applier)
  }
  return loaded
}

/** What holds at one place, ready to run. */
export interface BoundPolicies {
  /** In order of execution, without those that answer. */
  readonly steps: readonly Step[]
  /** Those that answer instead of a backend. */
  readonly answers: readonly Step[]
  /** What backend policies settle for connections. */
  readonly connection: ConnectionSettings
  /** What frontend policies settle for connections of clients. */
  readonly client: ClientSettings
  /** Why nothing may pass here; absent where all is enforced. */
  readonly closed?: string
}

const noSettings: ConnectionSettings = {}
const noClientSettings: ClientSettings = {}
/** Where no policy says anything. */
export const noPolicies: BoundPolicies = {
  steps: [],
  answers: [],
  connection: noSettings,
  client: noClientSettings,
}

/** A policy with what became of its config. */
interface BoundPolicy {
  readonly resource: PolicyResource
  readonly config: unknown
  readonly step: Step | undefined
  readonly closed: string | undefined
  /** Why it is left out, where that opens nothing. */
  readonly leftOut?: string
}

/** What becomes of a policy that cannot be applied as it is. */
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
  /** Keys of policies that no definition is for: from a newer controller, and nobody can tell what they protect. */
  readonly #unknown = new Set<string>()
  /** Rises with every change; what was merged under another generation is merged again. */
  generation = 0

  constructor(appliers: PolicyAppliers, services: PolicyServices, secrets: SecretValues) {
    this.#appliers = appliers
    this.#services = services
    this.#secrets = secrets
  }

  /**
   * Takes a policy in. Returns why it cannot be applied: then it fails closed, because its last good
   * version may allow what the new one forbids. One that can be left out is left out.
   */
  set(resource: PolicyResource): PolicyRefusal | undefined {
    this.remove(resource.key)
    const bound = this.#bind(resource)
    this.#byKey.set(resource.key, bound)
    const isKnown = findPolicy(resource.section, resource.field) !== undefined
    if (!isKnown && bound.leftOut === undefined) this.#unknown.add(resource.key)
    const target = targetKey(resource.target)
    const siblings = this.#byTarget.get(target)
    if (siblings === undefined) this.#byTarget.set(target, [resource])
    else siblings.push(resource)
    this.generation++
    if (bound.leftOut !== undefined) {
      return { code: 'resource_partly_known', message: bound.leftOut }
    }
    if (resource.unenforceable !== undefined || bound.closed === undefined) return undefined
    return { code: 'policy_unenforceable', message: bound.closed }
  }

  remove(key: string): void {
    const bound = this.#byKey.get(key)
    if (bound === undefined) return
    this.#byKey.delete(key)
    bound.step?.dispose?.()
    this.#unknown.delete(key)
    const target = targetKey(bound.resource.target)
    const left = this.#byTarget.get(target)?.filter((policy) => policy.key !== key) ?? []
    if (left.length === 0) this.#byTarget.delete(target)
    else this.#byTarget.set(target, left)
    this.generation++
  }

  /**
   * Merges one section at one place. A winning policy that cannot be enforced, or a pending
   * security policy, closes the place: every request it covers is answered 500.
   */
  merge(section: PolicySection, phase: PolicyPhase, levels: Levels): BoundPolicies {
    if (this.#byKey.size === 0) return noPolicies
    const found = mergePolicies(
      bySection[section],
      phase,
      levels,
      (target) => this.#byTarget.get(target) ?? [],
    )
    const unknown = this.#closedByUnknown(section, phase, levels)
    if (found.length === 0 && unknown === undefined) return noPolicies
    const steps: Step[] = []
    const answers: Step[] = []
    let connection = noSettings
    let client = noClientSettings
    let closed = unknown
    for (const { definition, policies } of found) {
      const bound = policies.flatMap(({ key }) => this.#byKey.get(key) ?? [])
      const why = bound.find((policy) => policy.closed !== undefined)?.closed
      closed ??= why
      // Nothing of what cannot be enforced as a whole is run.
      const step = why === undefined ? this.#stepOf(definition, bound) : undefined
      if (step === undefined) continue
      if (step.connection !== undefined) connection = { ...connection, ...step.connection }
      if (step.client !== undefined) client = { ...client, ...step.client }
      ;(definition.answers === true ? answers : steps).push(step)
    }
    return { steps, answers, connection, client, closed }
  }

  /** A policy that this version does not know closes what it covers: it may protect something. */
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
    if (definition.merge === 'replace') return bound[0]?.step
    const applier = this.#appliers.get(policyName(definition.section, definition.field))
    const configs = bound.map(({ config }) => config)
    return applier && this.#run(applier, configs, bound[0]?.resource.key ?? '')
  }

  #run(applier: PolicyApply<unknown>, config: unknown, key: string): Step {
    const { callouts, bucket } = this.#services
    const host = {
      key,
      bucket: (name: string, spec: RateLimitSpec) => bucket(`${key} ${name}`, spec),
    }
    return applier.bind(config, callouts, this.#secrets, host)
  }

  /** Binds once per policy and version, so that state in a step (a bucket) outlives other changes. */
  #bind(resource: PolicyResource): BoundPolicy {
    const name = policyName(resource.section, resource.field)
    const closed = (why: string): BoundPolicy => ({
      resource,
      config: undefined,
      step: undefined,
      closed: `${name} of ${resource.policy.namespace}/${resource.policy.name}: ${why}`,
    })
    if (resource.unenforceable !== undefined) return closed(resource.unenforceable)
    const definition = findPolicy(resource.section, resource.field)
    const unknown = (why: string): BoundPolicy => {
      const bound = closed(why)
      if (resource.dispensable !== true) return bound
      return { ...bound, closed: undefined, leftOut: `${bound.closed}; it goes on without it` }
    }
    if (definition === undefined) return unknown('this proxy does not know the policy')
    const applier = this.#appliers.get(name)
    if (applier === undefined) {
      // Pending: accepted by the schema, not enforced yet. Whatever protects must not be skipped.
      if (definition.security) return closed('is not supported yet')
      return { resource, config: undefined, step: undefined, closed: undefined }
    }
    if (resource.configVersion !== definition.configVersion) {
      return unknown(`this proxy does not know version ${resource.configVersion} of its form`)
    }
    try {
      const config: unknown = JSON.parse(resource.config)
      const problem = problemOf(applier.shape, config)
      if (problem !== undefined) return closed(`its compiled form is not valid: ${problem}`)
      if (definition.merge === 'replace') {
        const step = this.#run(applier, config, resource.key)
        return { resource, config, step, closed: undefined }
      }
      // Bound together with others when they are merged; alone, to learn now if it can be.
      this.#run(applier, [config], resource.key).dispose?.()
      return { resource, config, step: undefined, closed: undefined }
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

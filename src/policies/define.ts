/**
 * The contract of a policy, told once. A policy is one folder and one line in `registry.ts`.
 *
 *   schema   what users may write: fields, bounds, defaults, docs (control plane, CRDs, validation)
 *   compile  spec -> config: pure, control plane; what cannot be compiled becomes problems, and a
 *            security policy with a problem fails closed
 *   apply    config -> a step that runs on requests: data plane, loaded at start
 *
 * Registration gives it everything else: CRD text, the documentation table, merging, status
 * reasons, and its place in the order of execution, which is its position in the registry.
 */
import type { Callouts, Exchange, Verdict } from '../exchange/exchange.ts'
import type { PolicySection } from '../model/resources.ts'

/** Something wrong with a policy that its schema cannot see. */
export interface PolicyProblem {
  /** Path below the policy's field, such as `additionalOrigins[0]`; empty for the field itself. */
  readonly path: string
  readonly message: string
}

/** `config` is what the proxy receives; absent where nothing can be enforced. */
export interface Compiled<Config> {
  readonly config?: Config
  readonly problems: readonly PolicyProblem[]
}

/** A policy bound to its config; `onResponse` runs in reverse order of the registry. */
export interface Step {
  onRequest?(exchange: Exchange): Verdict | Promise<Verdict>
  onResponse?(exchange: Exchange): void | Promise<void>
}

/**
 * What `apply.ts` exports: makes a step once per configuration, never per request. Where the
 * definition merges by `append`, `config` is the array of every config that applies, least specific
 * level first.
 */
export interface PolicyApply<Config> {
  bind(config: Config, callouts: Callouts): Step
}

export interface PolicyDefinition<Spec = unknown, Config = unknown> {
  readonly section: PolicySection
  /** The field below the section, such as `csrf`. */
  readonly field: string
  /** A policy that protects something: where it cannot be enforced, requests are answered 500. */
  readonly security: boolean
  /** May it run before routing? */
  readonly preRouting: boolean
  /** How the same field from several sources combines; `append` only for authorization. */
  readonly merge: 'replace' | 'append'
  /** Version of Config's shape. */
  readonly configVersion: number
  /** Kinds of targets on which it has an effect; elsewhere it is ignored, with a message. Absent: all. */
  readonly effectiveOn?: readonly string[]
  /** It answers instead of a backend, after the filters of the rule, so that a redirect comes first. */
  readonly answers?: boolean
  /** Absent: the schema is accepted, and the object says that it is not supported yet. */
  readonly compile?: (spec: Spec) => Compiled<Config>
  readonly apply?: () => Promise<{ readonly default: PolicyApply<Config> }>
}

/** Types a definition; the registry holds definitions of many spec and config types. */
export function definePolicy<Spec, Config>(
  definition: PolicyDefinition<Spec, Config>,
): PolicyDefinition {
  return definition as PolicyDefinition
}

/** A field that the schema accepts and a later version will make work. */
export function pendingPolicy(
  section: PolicySection,
  field: string,
  options: { readonly security: boolean; readonly preRouting?: boolean },
): PolicyDefinition {
  return {
    section,
    field,
    security: options.security,
    preRouting: options.preRouting ?? false,
    merge: 'replace',
    configVersion: 0,
  }
}

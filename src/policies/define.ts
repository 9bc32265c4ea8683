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
import type { Shape } from '../base/shape.ts'
import type { ClientSettings, ConnectionSettings } from '../exchange/connection.ts'
import type { Callouts, Exchange, SecretValues, Verdict } from '../exchange/exchange.ts'
import type { McpRules } from '../exchange/mcp.ts'
import type { AccessLogRules, TracingRules } from '../exchange/observe.ts'
import type { PolicyHost } from '../exchange/rate-limits.ts'
import type { References } from '../model/references.ts'
import type { PolicySection, SecretRef } from '../model/resources.ts'
import type { Schema } from '../schema/field.ts'
import type { SectionField, SectionName } from '../schema/section-field.ts'

/** Something wrong with a policy that its schema cannot see. */
export interface PolicyProblem {
  /** Path below the policy's field, such as `additionalOrigins[0]`; empty for the field itself. */
  readonly path: string
  readonly message: string
  /** What is named is left out, and all the rest of the policy holds: it stays in force. */
  readonly partial?: true
}

/** `config` is what the proxy receives; absent where nothing can be enforced. */
export interface Compiled<Config> {
  readonly config?: Config
  readonly problems: readonly PolicyProblem[]
  /**
   * The config can be enforced in spite of its problems, because what it cannot judge it refuses:
   * credentials that cannot be read are nobody's credentials. The object still is invalid.
   */
  readonly protects?: true
  /** Values that the config names by their digests; they travel beside it. */
  readonly secrets?: readonly SecretRef[]
  /** What its author should know although all of it works; with the field's path in front. */
  readonly notes?: readonly string[]
}

/** A policy bound to its config; `onResponse` runs in reverse order of the registry. */
export interface Step {
  /** What a backend policy settles for connections; the same for every request. */
  readonly connection?: ConnectionSettings
  /** What a frontend policy settles for connections of clients. */
  readonly client?: ClientSettings
  /** What a frontend policy asks of the access log. */
  readonly accessLog?: AccessLogRules
  /** What a frontend policy asks of spans. */
  readonly tracing?: TracingRules
  /**
   * How what clients do at MCP servers is judged. The step's own `onRequest` runs on the request of
   * the client, before it is read, and once for each; not on those that are made of it for targets.
   */
  readonly mcp?: McpRules
  onRequest?(exchange: Exchange): Verdict | Promise<Verdict>
  onResponse?(exchange: Exchange): void | Promise<void>
  /** The policy is gone: gives back what garbage collection does not see. Idempotent. */
  dispose?(): void
}

/**
 * What `apply.ts` exports: makes a step once per configuration, never per request. Where the
 * definition merges by `append`, `config` is the array of every config that applies, least specific
 * level first.
 */
export interface PolicyApply<Config> {
  /** The form of one config. What a proxy has received is bound only if it has this form. */
  readonly shape: Shape<Config extends readonly (infer One)[] ? One : Config>
  bind(config: Config, callouts: Callouts, secrets: SecretValues, host: PolicyHost): Step
}

export interface PolicyDefinition<Spec = unknown, Config = unknown> {
  readonly section: PolicySection
  /** The field below the section, such as `csrf`. */
  readonly field: string
  /** What users may write. */
  readonly schema: Schema<Spec>
  /** One sentence for the reference pages. */
  readonly doc: string
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
  /** Omitted if no user writes the field: another object is compiled to it. */
  readonly compile?: (spec: Spec, references: References) => Compiled<Config>
  readonly apply: () => Promise<{
    readonly default: PolicyApply<Config> | PolicyApply<readonly Config[]>
  }>
}

/** A definition as the registry holds it; the literal names and the schema keep their types. */
export type RegisteredPolicy<Entry extends SectionField> = PolicyDefinition & Entry

type Behaviour<Spec, Config> = Omit<
  PolicyDefinition<Spec, Config>,
  'section' | 'field' | 'schema' | 'doc'
>

/** Joins what users may write with what it does. */
export function definePolicy<Section extends SectionName, Field extends string, Spec, Config>(
  entry: SectionField<Section, Field, Spec>,
  behaviour: Behaviour<Spec, Config>,
): RegisteredPolicy<SectionField<Section, Field, Spec>> {
  return { ...entry, ...behaviour } as RegisteredPolicy<SectionField<Section, Field, Spec>>
}

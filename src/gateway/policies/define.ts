/**
 * Defines what a policy is. Each policy has one folder, and one line in `registry.ts`.
 *
 *   schema   what users can write: fields, limits, defaults and docs, for the CRDs and validation
 *   compile  turns a spec into a config; a pure function in the control plane. Problems are reported,
 *            and a security policy with a problem rejects the requests that it applies to
 *   apply    turns a config into a step that runs on requests; loaded when the proxy starts
 *
 * Everything else follows from the registration: CRD text, reference pages, merging, status reasons, and
 * the order of execution, which is the position in the registry.
 */

import type { ExpressionPointName } from '../../engines/cel/index.ts'
import type { Shape } from '../../ground/base/shape.ts'
import type { ClientSettings, ConnectionSettings } from '../../ground/exchange/connection.ts'
import type {
  Callouts,
  Exchange,
  HeaderFields,
  SecretValues,
  Verdict,
} from '../../ground/exchange/exchange.ts'
import type { McpRules } from '../../ground/exchange/mcp.ts'
import type { AccessLogRules, MetricRules, TracingRules } from '../../ground/exchange/observe.ts'
import type { PolicyHost } from '../../ground/exchange/rate-limits.ts'
import type { References } from '../../ground/model/references.ts'
import type { SecretRef } from '../../ground/model/resources.ts'
import type { SectionField, SectionName } from '../../ground/schema/section-field.ts'

/** A problem in a policy that its schema cannot detect. */
export interface PolicyProblem {
  /** Path below the policy's field, such as `additionalOrigins[0]`; empty for the field itself. */
  readonly path: string
  readonly message: string
  /** Whether only this part is left out and the rest of the policy still applies. */
  readonly partial?: true
}

export interface Compiled<Config> {
  /** What the proxy receives. Omitted if no part of the policy can be applied. */
  readonly config?: Config
  readonly problems: readonly PolicyProblem[]
  /**
   * Whether the config can be enforced despite its problems, because it rejects what it cannot check. For
   * example, if credentials cannot be read, none are valid. The object is still reported as invalid.
   */
  readonly protects?: true
  /** Secret values whose digests the config contains; they are sent with it. */
  readonly secrets?: readonly SecretRef[]
  /** Hints for the user although everything works; each begins with the path of its field. */
  readonly notes?: readonly string[]
}

/** A policy bound to its config. `onResponse` of all steps runs in reverse order. */
export interface Step {
  /** Connection settings of a backend policy; the same for all requests. */
  readonly connection?: ConnectionSettings
  /** Settings of a frontend policy for client connections. */
  readonly client?: ClientSettings
  /** Access log settings of a frontend policy. */
  readonly accessLog?: AccessLogRules
  /** Labels of metrics that a frontend policy adds. */
  readonly metrics?: MetricRules
  /** Tracing settings of a frontend policy. */
  readonly tracing?: TracingRules
  /**
   * Rules for what clients do at MCP servers. `onRequest` of this step runs once for each request of a
   * client, before its message is read. It does not run for the requests to MCP servers that result
   * from it.
   */
  readonly mcp?: McpRules
  /** Rules for requests of A2A clients: returns why one is refused; undefined if it is allowed. */
  readonly a2a?: { refusal(exchange: Exchange): string | undefined } | undefined
  /** Whether it responds to requests for the OAuth metadata of the routes that it applies to. */
  readonly servesOAuthMetadata?: boolean
  onRequest?(exchange: Exchange): Verdict | Promise<Verdict>
  onResponse?(exchange: Exchange): void | Promise<void>
  /**
   * Called for 401 responses of the backend, or for all responses if `connection.bindsTokens` is set. Returns whether
   * the request should be sent again at once.
   */
  onBackendResponse?(
    exchange: Exchange,
    status: number,
    headers: Pick<HeaderFields, 'get' | 'getAll' | 'remove'>,
  ): boolean
  /** Called after the policy was removed, possibly several times, to release resources. */
  dispose?(): void
}

/**
 * The default export of `apply.ts`. `bind` makes a step once per configuration, never per request. If the
 * definition merges by `append`, its `config` is the list of all configs that apply, starting with the
 * least specific level.
 */
export interface PolicyApply<Config> {
  /** The schema of one config. The proxy binds only configs that match it. */
  readonly shape: Shape<OneOf<Config>>
  bind(config: Config, callouts: Callouts, secrets: SecretValues, host: PolicyHost): Step
}

type OneOf<Config> = Config extends readonly (infer One)[] ? One : Config

/**
 * Which expressions of a policy run at which point. The first entry applies whose path is that of the
 * expression below the policy's field, or of a field around it; an empty path fits all.
 */
export type ExpressionPoints = readonly {
  readonly path: string
  readonly point: ExpressionPointName
  /** The point in phase PreRouting. Default: `point`. */
  readonly early?: ExpressionPointName
}[]

/** The parts of a definition that describe how a policy behaves, in addition to its field and schema. */
interface PolicyBehaviour<Spec, Config> {
  /** Whether the policy protects something: if it cannot be enforced, requests fail with 500. */
  readonly security: boolean
  /** Whether it can run in phase PreRouting. Default: false. */
  readonly preRouting?: boolean
  /** How the policies of several levels combine. Default: `replace`; only authorization uses `append`. */
  readonly merge?: 'replace' | 'append'
  /** Version of the config format. Default: 1. */
  readonly configVersion?: number
  /** Kinds of targets on which it has an effect; the status reports others. Default: all. */
  readonly effectiveOn?: readonly string[]
  /**
   * Whether users can write variants of it, each with a condition (`conditional.ts`), and whether one of them must apply
   * to each request. Only with `merge: 'replace'`.
   */
  readonly conditional?: 'always one' | 'at most one'
  /** Whether a service that it calls gets all headers of the request. */
  readonly seesAllHeaders?: true
  /** When its expressions run. They must not read what never has a value then. Required if it has any. */
  readonly expressions?: ExpressionPoints
  /**
   * False if later policies see the same request. Simulations assume that a policy whose verdict is unknown may have
   * changed the request, unless this is false or `past/simulate/step-effects.ts` says what it may change.
   */
  readonly changesRequest?: false
  /** False if no request ends at it, as far as its record can say; simulations then need not know its input. */
  readonly endsRequest?: false
  /** Whether it responds in place of a backend. It then runs after the rule's filters, such as redirects. */
  readonly answers?: boolean
  /** Omitted if users cannot set the field, because it is compiled from another object. */
  compile?(spec: Spec, references: References): Compiled<OneOf<Config>>
  readonly apply: () => Promise<{ readonly default: PolicyApply<Config> }>
}

const defaults = { preRouting: false, merge: 'replace', configVersion: 1 } as const

export type PolicyDefinition<Field extends SectionField = SectionField> = Field &
  PolicyBehaviour<unknown, unknown> &
  Required<Pick<PolicyBehaviour<unknown, unknown>, keyof typeof defaults>>

/** Declares a policy, and keeps the literal types of its names and schema. */
export function definePolicy<
  const Section extends SectionName,
  const Field extends string,
  Spec,
  Config,
>(
  definition: SectionField<Section, Field, Spec> & PolicyBehaviour<Spec, Config>,
): PolicyDefinition<SectionField<Section, Field, Spec>> {
  return { ...defaults, ...definition }
}

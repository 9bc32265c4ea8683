/** The configuration of the filter for Envoy, in the words of GatewayPolicy and GatewayBackend. */
import type { HeaderChanges, NamedMatch, PathMatch } from '../../../ground/model/resources.ts'

interface FilterGuard {
  readonly regex: {
    readonly matches?: readonly string[]
    readonly builtins?: readonly string[]
    readonly words?: readonly string[]
    readonly action?: 'Mask' | 'Reject'
  }
  readonly response?: { readonly message: string; readonly statusCode: number }
}

export interface FilterModel {
  /** Endings of paths, the longest first; `*` is any path. */
  readonly routes?: readonly { readonly ending: string; readonly type: string }[]
  readonly promptGuard?: {
    readonly request?: readonly FilterGuard[]
    readonly response?: readonly FilterGuard[]
  }
}

interface FilterLimit {
  readonly requests?: number
  readonly tokens?: number
  readonly unit: string
  readonly burst?: number
}

/** What the filter does with requests. */
export interface FilterActions {
  readonly rateLimit?: { readonly name: string; readonly local: readonly FilterLimit[] }
  readonly headerModifiers?: {
    readonly request?: HeaderChanges
    readonly response?: HeaderChanges
  }
  readonly ai?: FilterModel
  /** Requests fail with 500, because a policy cannot be enforced. */
  readonly unusable?: true
}

export interface FilterRule extends FilterActions {
  readonly name: string
  readonly hostnames?: readonly string[]
  readonly match: {
    readonly path: PathMatch
    readonly method?: string
    readonly headers?: readonly NamedMatch[]
  }
}

export interface FilterConfig {
  /** Whether the host calls the filter for bodies while it holds the headers. */
  readonly holdHeaders?: true
  /** In order of precedence: the first one that matches a request applies. */
  readonly rules: readonly FilterRule[]
}

/** Something in the manifests that a filter cannot do. */
export interface FilterGap {
  /** The object, such as `GatewayPolicy default/guards`. */
  readonly object: string
  readonly message: string
  /** Whether a protection is lost. */
  readonly isProtection: boolean
}

/** Providers of language models and the models that they serve, in the form that proxies receive. */
import type { ObjectRef } from './names.ts'
import type { BackendTarget } from './resources.ts'

/** Settings of a provider; which fields are used depends on the vendor. */
export interface ProviderConfig {
  /** A key of the table in src/gateway/backends/ai/providers. */
  readonly vendor: string
  /** Overrides the model of requests. */
  readonly model?: string
  /** Host of the API, for vendors without a fixed host. If it begins with a scheme, that is ignored. */
  readonly endpoint?: string
  readonly deploymentName?: string
  readonly apiVersion?: string
  readonly projectId?: string
  readonly region?: string
  readonly guardrail?: { readonly identifier: string; readonly version: string }
  /** The formats that a server has, for vendors of which each server has others. */
  readonly formats?: readonly ServedFormat[]
  /** Name of the vendor in telemetry, for vendors that stand for several. */
  readonly systemName?: string
  /** Replaces the beginning that all paths of the vendor have, such as `/v1`. */
  readonly pathPrefix?: string
}

interface ServedFormat {
  /** A type of requests, such as `Completions`. */
  readonly type: string
  /** Path of the requests; the usual one if omitted. */
  readonly path?: string
}

export interface ModelProvider {
  /** Name by which policies refer to the provider; omitted if it is the only one. */
  readonly name?: string
  readonly config: ProviderConfig
  /** Host to connect to. If omitted, the vendor's default host. */
  readonly host?: string
  /** Port to connect to. If omitted, 443. */
  readonly port?: number
  /** Path and query of all requests, in place of the vendor's paths. */
  readonly path?: string
  /** The object that declares the provider, whose policies apply to it. If omitted, the backend. */
  readonly owner?: ObjectRef
  /** The Service or InferencePool to connect to, in place of a host. */
  readonly target?: BackendTarget
  /** Whether the connection is encrypted. If omitted, the host and the port decide. */
  readonly isTls?: boolean
}

/** Providers of equal priority. */
export type ProviderGroup = readonly ModelProvider[]

/** A name of a model, and the providers that may serve it. */
export interface ServedModel {
  /** `namespace/name` of the object. */
  readonly name: string
  /** Names in requests; at most one `*`, which stands for any text, at the start or the end. */
  readonly match: string
  /** Whether clients cannot ask for it. */
  readonly isInternal: boolean
  /** How one of several targets is chosen. */
  readonly choice: ModelChoice
  readonly targets: readonly ModelTarget[]
  /** Expression; requests with the same value go to the same target. */
  readonly affinity?: string
  readonly failover?: FailoverRules
}

export const modelChoices = ['weighted', 'failover', 'conditional'] as const
export type ModelChoice = (typeof modelChoices)[number]

export interface ModelTarget {
  /** Position of the provider in the only group of the backend. */
  readonly provider: number
  readonly weight: number
  /** Targets with the lowest number are preferred. */
  readonly priority: number
  /** Expression; the target is used if it is true. */
  readonly when?: string
  /** Failures of this target after which another one is tried; those of the model if omitted. */
  readonly failover?: FailoverRules
}

/** Failures after which the next provider is tried. */
export interface FailoverRules {
  /** Statuses of responses. */
  readonly statuses: readonly number[]
  /** Codes and types of errors. */
  readonly errorCodes: readonly string[]
  /** Whether another provider is tried if the request is too large for the context of a model. */
  readonly onContextExceeded: boolean
  /** Whether another provider is tried if the filter of a provider refuses the request or the response. */
  readonly onContentFilter: boolean
  /** Set if another provider is tried if a provider does not have the model. */
  readonly onModelNotFound?: boolean
  /** Milliseconds until the first event of a streamed response; no limit if omitted. */
  readonly firstTokenMs?: number
  /** Milliseconds without a byte before the first event of a streamed response; no limit if omitted. */
  readonly idleMs?: number
  /** A response with 429 leads to another provider only if it asks for a longer wait than this. */
  readonly retryAfterMs?: number
}

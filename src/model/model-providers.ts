/** Providers of language models behind a GatewayBackend, in the words of the interface. */

/** What is asked of whom; which fields count depends on the vendor. */
export interface ProviderConfig {
  /** A name of the table in src/backends/ai/providers. */
  readonly vendor: string
  /** Overrides the model of requests. */
  readonly model?: string
  /** Host of the API, for vendors that have none of their own; a scheme in front does not count. */
  readonly endpoint?: string
  readonly deploymentName?: string
  readonly apiVersion?: string
  readonly projectId?: string
  readonly region?: string
  readonly guardrail?: { readonly identifier: string; readonly version: string }
}

export interface ModelProvider {
  /** What policies call it; absent where it is the only one. */
  readonly name?: string
  readonly config: ProviderConfig
  /** The vendor's own where absent. */
  readonly host?: string
  /** 443 where absent. */
  readonly port?: number
  /** Path and query of every request, in place of the vendor's. */
  readonly path?: string
}

/** Providers of equal priority. */
export type ProviderGroup = readonly ModelProvider[]

/** Providers of language models behind a GatewayBackend, in the form that proxies receive. */

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
}

/** Providers of equal priority. */
export type ProviderGroup = readonly ModelProvider[]

/** Providers of language models behind a GatewayBackend, in the words of the interface. */

export type Vendor = 'vendorA' | 'vendorB' | 'vendorC' | 'vendorD' | 'vendorE' | 'vendorF'

/** What is asked of whom; which fields count depends on the vendor. */
export interface ProviderConfig {
  readonly vendor: Vendor
  /** Overrides the model of requests. */
  readonly model?: string
  /** vendorB: host of its API, without a scheme. */
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

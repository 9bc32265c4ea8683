/** What a provider is: where it listens, which formats it takes on which paths, what its calls need. */
import { credentialsOf } from '../../../auth/authorization-header.ts'
import type { HeaderFields } from '../../../exchange/exchange.ts'
import type { SigningScope } from '../../../exchange/forwarding.ts'
import type { ProviderConfig } from '../../../model/model-providers.ts'
import type { CloudCredentials } from '../credentials/default-credentials.ts'
import type { CachingPolicy } from '../formats/converse/caching.ts'
import type { ConverseOptions } from '../formats/converse/write-request.ts'
import type { JsonObject } from '../json.ts'
import type { RouteType } from '../policy/schema.ts'
import type { ProviderFormat } from '../provider-formats.ts'

export type { ProviderConfig } from '../../../model/model-providers.ts'

/** Route types whose requests are looked into. */
export type ReadRouteType = Exclude<RouteType, 'Models' | 'Passthrough' | 'Realtime'>

/** How one request is served by one provider. */
export type Plan =
  /** The provider speaks the client's format: the body goes out as it is, but for `change`. */
  | { readonly kind: 'native'; readonly path: string; change?(body: JsonObject): JsonObject }
  /** A conversation is translated. */
  | {
      readonly kind: 'translated'
      readonly path: string
      readonly format: ProviderFormat
      change?(body: JsonObject): JsonObject
    }
  /** Embeddings in a format of the provider's own. */
  | { readonly kind: 'embeddings'; readonly path: string; readonly format: 'predict' | 'invoke' }
  /** Tokens are counted by the provider, in a format of its own. */
  | { readonly kind: 'invoke-count'; readonly path: string }
  /** Tokens are counted here. */
  | { readonly kind: 'local-count' }

/** Where SDKs of the vendor put the key of a client. */
interface KeyPlaces {
  /** In lower case. */
  readonly header: string
  /** A query parameter that carries the same. */
  readonly parameter?: string
  /** Realtime sessions from browsers offer it as a subprotocol. */
  readonly isSubprotocol?: true
}

export interface Provider {
  readonly keyPlaces: KeyPlaces
  /** Does the token have the form of the vendor's own keys? Absent if they have none. */
  isOwnKey?(token: string): boolean
  /** `gen_ai.provider.name`, of OpenTelemetry's semantic conventions. */
  readonly systemName: string
  /** Where the provider itself listens, with TLS, on port 443. */
  defaultHost(config: ProviderConfig): string
  /**
   * `model`: the one that will be asked, after aliases.
   * @throws LlmError 400 where the provider has no such thing.
   */
  plan(route: ReadRouteType, model: string, config: ProviderConfig, isStream: boolean): Plan
  /** Path and query of realtime sessions; absent where the provider has none. */
  realtimePath?(config: ProviderConfig): string
  /** Where the provider lists its models in vendorA's format, or its own; absent where it does not. */
  modelsPath?(config: ProviderConfig): string | undefined
  /** What requests are signed for, where the provider wants signatures. */
  signingScope?(config: ProviderConfig): SigningScope
  /**
   * Puts credentials where the provider looks for them, and adds what every call needs. `path`: as
   * it will be sent.
   */
  adaptHeaders(headers: HeaderFields, path: string): void
  /** What translated requests say besides the conversation. `headers`: of the client. */
  requestOptions?(
    config: ProviderConfig,
    caching: CachingPolicy | undefined,
    headers: HeaderFields,
  ): ConverseOptions
  /** For backends without `auth`. If omitted, the vendor only takes keys of its own. */
  readonly cloudCredentials?: CloudCredentials
}

/** The token of `Authorization: Bearer`; undefined where there is none, or no telling which. */
export function bearerToken(headers: HeaderFields): string | undefined {
  const token = credentialsOf(headers, 'bearer')
  return typeof token === 'string' ? token : undefined
}

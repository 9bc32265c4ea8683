/** The contract of a provider: its host, the formats and paths of its API, and its headers. */
import { credentialsOf } from '../../../../engines/auth/authorization-header.ts'
import type { KeyPlaces } from '../../../../engines/auth/vendor-keys.ts'
import type { HeaderFields } from '../../../../ground/exchange/exchange.ts'
import type { SigningScope } from '../../../../ground/exchange/forwarding.ts'
import type { ProviderConfig } from '../../../../ground/model/model-providers.ts'
import type { ProviderFormat } from '../chat.ts'
import type { CloudCredentials } from '../credentials/default-credentials.ts'
import type { CachingPolicy } from '../formats/converse/caching.ts'
import type { ConverseOptions } from '../formats/converse/write-request.ts'
import type { JsonObject } from '../json.ts'
import type { RouteType } from '../policy/schema.ts'

export type { ProviderConfig } from '../../../../ground/model/model-providers.ts'

/** Route types whose requests the gateway reads. */
export type ReadRouteType = Exclude<RouteType, 'Models' | 'Passthrough' | 'Realtime'>

/** How one provider serves one request. */
export type Plan =
  /** The provider has the client's format, so the body is not translated; `change` may modify it. */
  | { readonly kind: 'native'; readonly path: string; change?(body: JsonObject): JsonObject }
  /** The conversation is translated to `format`. */
  | {
      readonly kind: 'translated'
      readonly path: string
      readonly format: ProviderFormat
      change?(body: JsonObject): JsonObject
    }
  /** Embeddings in the provider's own format. */
  | { readonly kind: 'embeddings'; readonly path: string; readonly format: 'predict' | 'invoke' }
  /** The provider counts the tokens; request and answer are in its own format. */
  | { readonly kind: 'invoke-count'; readonly path: string }
  /** The gateway counts tokens. */
  | { readonly kind: 'local-count' }

export interface Provider {
  /** Header and query parameter in which SDKs of the vendor send the client's key. */
  readonly keyPlaces: KeyPlaces
  /** Set if browsers may send the key as a subprotocol of realtime sessions. */
  readonly takesSubprotocolKey?: true
  /** Returns true if a token has the form of the vendor's keys. Omitted if the keys have no special form. */
  isOwnKey?(token: string): boolean
  /** Value of `gen_ai.provider.name` in OpenTelemetry's conventions. */
  readonly systemName: string
  /** The provider's own host, which serves TLS on port 443. */
  defaultHost(config: ProviderConfig): string
  /**
   * Decides how the provider serves a request; `model` is the model after aliases are resolved.
   * @throws LlmError 400 if the provider does not support the request.
   */
  plan(route: ReadRouteType, model: string, config: ProviderConfig, isStream: boolean): Plan
  /** Path and query of realtime sessions; omitted if the provider has no such sessions. */
  realtimePath?(config: ProviderConfig): string
  /** The path of the provider's list of models, in vendor A's format or its own. */
  modelsPath?(config: ProviderConfig): string | undefined
  /** The signing scope; omitted if the provider does not require signed requests. */
  signingScope?(config: ProviderConfig): SigningScope
  /** Moves credentials to the provider's header and adds required headers; `path` is the path as sent. */
  adaptHeaders(headers: HeaderFields, path: string): void
  /** Settings for translated requests in addition to the conversation; `headers` are those of the client. */
  requestOptions?(
    config: ProviderConfig,
    caching: CachingPolicy | undefined,
    headers: HeaderFields,
  ): ConverseOptions
  /** Credentials for backends without `auth`. Omitted if the vendor accepts only its own keys. */
  readonly cloudCredentials?: CloudCredentials
}

/** Returns the token of `Authorization: Bearer`; undefined if there is none or more than one. */
export function bearerToken(headers: HeaderFields): string | undefined {
  const token = credentialsOf(headers, 'bearer')
  return typeof token === 'string' ? token : undefined
}

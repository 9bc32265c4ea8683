/** The contract of a provider: its host, the formats and paths of its API, and its headers. */
import { credentialsOf } from '../../../../engines/auth/authorization-header.ts'
import type { ReadKeyPlaces } from '../../../../engines/auth/vendor-keys.ts'
import type { Planner } from '../../../../engines/messages/plan.ts'
import type { OwnCollection } from '../../../../engines/messages/stored/collections.ts'
import type { HeaderFields } from '../../../../ground/exchange/exchange.ts'
import type { SigningScope } from '../../../../ground/exchange/forwarding.ts'
import type { ProviderConfig } from '../../../../ground/model/model-providers.ts'
import type { CloudCredentials } from '../credentials/default-credentials.ts'

export type { ProviderConfig } from '../../../../ground/model/model-providers.ts'

export interface Provider extends Planner {
  /** Header and query parameter in which SDKs of the vendor send the client's key. */
  readonly keyPlaces: ReadKeyPlaces
  /** Set if browsers may send the key as a subprotocol of realtime sessions. */
  readonly takesSubprotocolKey?: true
  /** Returns true if a token has the form of the vendor's keys. Omitted if the keys have no special form. */
  isOwnKey?(token: string): boolean
  /** Value of `gen_ai.provider.name` in OpenTelemetry's conventions. */
  readonly systemName: string
  /** The provider's own host, which serves TLS on port 443. */
  defaultHost(config: ProviderConfig): string
  /** Path and query of realtime sessions; omitted if the provider has no such sessions. */
  realtimePath?(config: ProviderConfig): string
  /** The path of the provider's list of models, in vendor A's format or its own. */
  modelsPath?(config: ProviderConfig): string | undefined
  /** The path of a collection of stored things; omitted or undefined if the provider has none. */
  storedPath?(name: OwnCollection, config: ProviderConfig): string | undefined
  /** The signing scope; omitted if the provider does not require signed requests. */
  signingScope?(config: ProviderConfig): SigningScope
  /** The place of the inference, as far as prices depend on it; omitted if they do not. */
  place?(config: ProviderConfig): PricedPlace
  /** Moves credentials to the provider's header and adds required headers; `path` is the path as sent. */
  adaptHeaders(headers: HeaderFields, path: string): void
  /** Credentials for backends without `auth`. Omitted if the vendor accepts only its own keys. */
  readonly cloudCredentials?: CloudCredentials
}

/** Where a provider runs its models. */
interface PricedPlace {
  /** A place by which a price is multiplied, such as `regional`. */
  readonly geography?: string
  /** A region in front of the names of models that have prices of their own there. */
  readonly region?: string
}

/** Returns a path of an API whose paths begin with `/v1`, unless users set another beginning. */
export const below = (path: string, { pathPrefix = '/v1' }: ProviderConfig): string =>
  `${pathPrefix.replace(/\/$/, '')}/${path}`

/** Returns the token of `Authorization: Bearer`; undefined if there is none or more than one. */
export function bearerToken(headers: HeaderFields): string | undefined {
  const token = credentialsOf(headers, 'bearer')
  return typeof token === 'string' ? token : undefined
}

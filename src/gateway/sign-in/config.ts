import {
  amount,
  choice,
  flag,
  type Infer,
  list,
  map,
  optional,
  record,
  text,
} from '../../ground/base/shape.ts'
import { calloutTarget } from '../../ground/model/shapes.ts'

/** The compiled form that proxies receive. Its version is `configVersion` of the definition. */
export const shape = record({
  issuer: text,
  clientId: text,
  /** Digest of the client secret; omitted for a public client. */
  clientSecret: optional(text),
  tokenEndpointAuth: choice('ClientSecretBasic', 'ClientSecretPost'),
  authorizationEndpoint: optional(text),
  tokenEndpoint: optional(text),
  endSessionEndpoint: optional(text),
  jwksURI: optional(text),
  /** Backend through which the issuer's own origin is reached; if omitted, its host name is resolved. */
  target: optional(calloutTarget),
  scopes: list(text),
  resources: list(text),
  authorizationParameters: map(text),
  acrValues: list(text),
  maxAgeMs: optional(amount),
  /** A path, or an absolute URL. */
  redirectURI: text,
  logoutPath: text,
  /** A path, or an absolute URL. */
  postLogoutRedirectURI: optional(text),
  backChannelLogoutPath: optional(text),
  frontChannelLogoutPath: optional(text),
  signInMs: amount,
  sessionMs: amount,
  defaultTokenMs: amount,
  refreshToken: flag,
  /** Digests of the keys that open cookies; the first one seals. If empty, the key of the gateway is used. */
  keys: list(text),
  passThroughAuthHeader: flag,
  forwardAccessToken: flag,
  /** Name of the header for the ID token; omitted if it is not forwarded. */
  forwardIDToken: optional(text),
})
export type OidcConfig = Infer<typeof shape>

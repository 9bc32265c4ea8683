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
  where,
} from '../../ground/base/shape.ts'
import { calloutTarget } from '../../ground/model/shapes.ts'

const url = where(text, 'a URL', (value) => URL.canParse(value))
const pathOrURL = where(text, 'a path or a URL', (value) => {
  return value.startsWith('/') || URL.canParse(value)
})

/** The compiled form that proxies receive. Its version is `configVersion` of the definition. */
export const shape = record({
  issuer: url,
  clientId: text,
  /** Digest of the client secret; omitted for a public client. */
  clientSecret: optional(text),
  tokenEndpointAuth: choice('ClientSecretBasic', 'ClientSecretPost'),
  authorizationEndpoint: optional(url),
  tokenEndpoint: optional(url),
  endSessionEndpoint: optional(url),
  jwksURI: optional(url),
  /** Backend through which the issuer's own origin is reached; if omitted, its host name is resolved. */
  target: optional(calloutTarget),
  scopes: list(text),
  resources: list(text),
  authorizationParameters: map(text),
  acrValues: list(text),
  maxAgeMs: optional(amount),
  redirectURI: pathOrURL,
  logoutPath: text,
  postLogoutRedirectURI: optional(pathOrURL),
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

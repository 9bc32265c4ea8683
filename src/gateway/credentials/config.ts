/** The compiled form of credentials that the gateway fetches or makes for backends. Secrets are digests of their values. */
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
import { locationShape } from '../tokens/location.ts'

const signingAlgorithms = ['RS256', 'RS384', 'RS512', 'PS256', 'ES256', 'ES384'] as const
export type SigningAlgorithm = (typeof signingAlgorithms)[number]

/** A private key of the gateway, in PEM. */
const signingKeyShape = record({
  /** Digest of the key. */
  key: text,
  alg: choice(...signingAlgorithms),
  kid: optional(text),
})
export type SigningKeyConfig = Infer<typeof signingKeyShape>

/** How the gateway authenticates at a token endpoint (RFC 6749 section 2.3, RFC 7523). */
const clientAuthShape = record({
  clientId: text,
  method: choice('ClientSecretBasic', 'ClientSecretPost', 'PrivateKeyJwt'),
  secret: optional(text),
  /** Set for PrivateKeyJwt. */
  assertion: optional(
    record({
      signing: signingKeyShape,
      audience: text,
      /** Digest of the certificate in PEM that the header of the assertion names. */
      certificate: optional(text),
      certificateHeader: choice('x5c', 'x5t#S256'),
    }),
  ),
})
export type ClientAuthConfig = Infer<typeof clientAuthShape>

/** A token endpoint. One of `url`, `issuer` and `target` is set. */
const endpointShape = record({
  /** URL of the endpoint. */
  url: optional(text),
  /** Issuer whose metadata names the endpoint. */
  issuer: optional(text),
  /** Backend of the endpoint, at `path`. */
  target: optional(calloutTarget),
  path: optional(text),
  /** Omitted if the gateway does not authenticate. */
  clientAuth: optional(clientAuthShape),
})
export type EndpointConfig = Infer<typeof endpointShape>

/** Where a credential is put. If omitted, as a bearer token in the Authorization header. */
export const placementShape = record({
  header: optional(record({ name: text, prefix: optional(text) })),
  queryParameter: optional(record({ name: text })),
  cookie: optional(record({ name: text })),
})
export type PlacementConfig = Infer<typeof placementShape>

/** Values that requests carry besides the credential. */
export const further = {
  credentials: optional(
    list(
      record({
        /** Digest of the value. */
        value: text,
        location: optional(placementShape),
      }),
    ),
  ),
} as const

const cacheShape = record({
  /** 0 switches the cache off. */
  maxEntries: amount,
  /** Lifetime of a token whose lifetime the endpoint does not say. */
  defaultMs: amount,
})
export type CacheConfig = Infer<typeof cacheShape>

const targetOfToken = {
  audiences: list(text),
  scopes: list(text),
  resources: list(text),
} as const

/** Whether tokens are bound to a key of the gateway (DPoP, RFC 9449). */
const dpop = optional(choice(true))

const common = {
  dpop,
  location: optional(placementShape),
  cache: cacheShape,
  ...further,
} as const

/** A token of a client of the request. If `source` is omitted, the one that a policy has verified. */
const sentTokenShape = record({ source: optional(locationShape), type: text })
export type SentTokenConfig = Infer<typeof sentTokenShape>

const expressions = map(text)

export const grantShapes = {
  clientCredentials: record({
    type: choice('clientCredentials'),
    endpoint: endpointShape,
    ...targetOfToken,
    /** Further parameters, by name. */
    parameters: map(text),
    ...common,
  }),
  tokenExchange: record({
    type: choice('tokenExchange'),
    grantType: choice('TokenExchange', 'JwtBearer'),
    endpoint: endpointShape,
    subject: sentTokenShape,
    actor: optional(sentTokenShape),
    /** Whether the subject token must name the actor (RFC 8693 section 4.4). */
    mayAct: optional(choice(true)),
    ...targetOfToken,
    requestedType: optional(text),
    /** Expressions of further parameters, by name. */
    parameters: expressions,
    ...common,
  }),
  crossAppAccess: record({
    type: choice('crossAppAccess'),
    identityProvider: endpointShape,
    resourceServer: endpointShape,
    subject: sentTokenShape,
    audience: text,
    resources: list(text),
    scopes: list(text),
    accessTokenScopes: list(text),
    ...common,
  }),
} as const
export type ClientCredentialsConfig = Infer<typeof grantShapes.clientCredentials>
export type TokenExchangeConfig = Infer<typeof grantShapes.tokenExchange>
export type CrossAppAccessConfig = Infer<typeof grantShapes.crossAppAccess>
export type GrantConfig = ClientCredentialsConfig | TokenExchangeConfig | CrossAppAccessConfig

/** A token that the user allows the gateway to have. */
export const userConsentShape = record({
  type: choice('userConsent'),
  /** The authorization server of the service, with the client of the gateway. */
  endpoint: endpointShape,
  /** If omitted, the metadata of the issuer names it. */
  authorizationEndpoint: optional(text),
  /** Address of the page of the gateway, which also names the service. */
  redirectURI: text,
  /** How the page names the service. */
  label: text,
  scopes: list(text),
  resources: list(text),
  /** Further parameters of the authorization request, by name. */
  parameters: map(text),
  /** Digests of the keys that seal tokens; the first one seals. If empty, the key of the gateway is used. */
  keys: list(text),
  /** Lifetime of a token whose lifetime the endpoint does not say. */
  defaultMs: amount,
  dpop,
  location: optional(placementShape),
  ...further,
})
export type UserConsentConfig = Infer<typeof userConsentShape>

export const jwtSignShape = record({
  type: choice('jwtSign'),
  signing: signingKeyShape,
  /** Expressions of claims, by name. */
  claims: expressions,
  ttlMs: amount,
  location: optional(placementShape),
  ...further,
})
export type JwtSignConfig = Infer<typeof jwtSignShape>

const managedIdentity = record({
  clientId: optional(text),
  objectId: optional(text),
  resourceId: optional(text),
})

/** Tokens and roles of clouds. Without a source, that of the environment of the proxy. */
export const cloudShapes = {
  awsRole: record({
    type: choice('awsRole'),
    roleArn: text,
    /** One of the two is set. */
    sessionName: optional(text),
    sessionNameExpression: optional(text),
    tags: list(record({ key: text, value: optional(text), expression: optional(text) })),
    serviceName: optional(text),
    region: optional(text),
    ...further,
  }),
  azure: record({
    type: choice('azure'),
    resource: text,
    /** Digests of the entries of a Secret. */
    secret: optional(record({ clientId: text, tenantId: text, clientSecret: text })),
    managedIdentity: optional(managedIdentity),
    workloadIdentity: optional(choice(true)),
    ...further,
  }),
  gcp: record({
    type: choice('gcp'),
    idToken: flag,
    /** Digest of a credential file. */
    file: optional(text),
    /** Audience of ID tokens; if omitted, the host of the request. */
    audience: optional(text),
    ...further,
  }),
} as const
export type AwsRoleConfig = Infer<typeof cloudShapes.awsRole>
export type AzureConfig = Infer<typeof cloudShapes.azure>
export type GcpConfig = Infer<typeof cloudShapes.gcp>

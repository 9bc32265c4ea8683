/** What users can write about credentials for backends. */
import {
  boolean,
  choice,
  type Infer,
  integer,
  list,
  map,
  object,
  optional,
  required,
  text,
} from '../../../../ground/schema/field.ts'
import { atLeastOneOf, atMostOneOf, exactlyOneOf, rule } from '../../../../ground/schema/rules.ts'
import {
  credentialLocation,
  credentialPlacement,
} from '../../../../ground/schema/shapes/authentication.ts'
import { localReference, secretKeyReference } from '../../../../ground/schema/shapes/references.ts'
import {
  celExpression,
  duration,
  longString,
  shortString,
  tinyString,
} from '../../../../ground/schema/strings.ts'
import { awsAuth, azureAuth, gcpAuth } from './cloud-schema.ts'
import { clientAuth, endpointFields, endpointRules, signing } from './endpoint-schema.ts'

const texts = list(longString, { min: 1, max: 64 })
const target = {
  audiences: optional(texts, 'Values of `audience`: who the token is for.'),
  resources: optional(texts, 'Values of `resource`: URLs that the token is for (RFC 8707).'),
  scopes: optional(list(shortString, { min: 1, max: 64 }), 'Scopes to ask for.'),
} as const

const common = {
  location: optional(
    credentialPlacement,
    'Where the request has the token. If not set, in `Authorization` with the scheme `Bearer`.',
  ),
  cache: optional(
    object('TokenCache', {
      inMemory: optional(
        object('InMemoryTokenCache', {
          maxEntries: optional(integer({ min: 0, max: 65_536 }), {
            doc: 'Number of tokens that each worker keeps. 0 asks for a token for each request.',
            default: '8192',
          }),
          defaultTtl: optional(duration, {
            doc: 'Lifetime of tokens if the endpoint does not name one.',
            default: '300s',
          }),
        }),
        'In the memory of the proxy.',
      ),
    }),
    'How tokens are kept.',
  ),
  dpop: optional(
    boolean(),
    'Whether tokens are bound to a key of the gateway (RFC 9449). Not with `location`.',
  ),
} as const

const parameterName = text({
  name: 'TokenParameter',
  min: 1,
  max: 64,
  pattern: '^[A-Za-z0-9_.-]+$',
  expects: 'a name of letters, digits, `_`, `.` and `-`',
})

const clientCredentials = object(
  'OAuthClientCredentials',
  {
    ...endpointFields,
    clientAuth: required(clientAuth, 'How the gateway authenticates at the endpoint.'),
    ...target,
    additionalParams: optional(
      map(longString, { keys: parameterName, max: 64 }),
      'Further parameters of the token request.',
    ),
    ...common,
  },
  { rules: endpointRules },
)

/** Short names of token types (RFC 8693 section 3), or a URI. */
const tokenType = text({
  name: 'OAuthTokenType',
  min: 1,
  max: 256,
  pattern: '^(AccessToken|Jwt|IdToken|IdJag|[A-Za-z][A-Za-z0-9+.-]*:[^\\s]+)$',
  expects: 'AccessToken, Jwt, IdToken, IdJag or an absolute URI',
})

const sentToken = (byDefault: string) =>
  object('OAuthSubjectToken', {
    source: optional(
      credentialLocation,
      'Where the token is. If not set, it is the token that an authentication policy has verified. A token from another place is only checked by the authorization server.',
    ),
    tokenType: optional(tokenType, { doc: 'Type of the token.', default: byDefault }),
  })

const tokenExchange = object(
  'OAuthTokenExchange',
  {
    ...endpointFields,
    clientAuth: optional(
      clientAuth,
      'How the gateway authenticates at the endpoint. If not set, it does not.',
    ),
    grantType: optional(
      choice('OAuthGrantType', {
        TokenExchange: 'token exchange (RFC 8693)',
        JwtBearer: 'the token of the user as an assertion (RFC 7523)',
      }),
      { doc: 'How the token is requested.', default: 'TokenExchange' },
    ),
    subjectToken: optional(sentToken('AccessToken'), 'The token of the user.'),
    actorToken: optional(
      object(
        'OAuthActorToken',
        {
          source: required(credentialLocation, 'Where the token is.'),
          tokenType: optional(tokenType, { doc: 'Type of the token.', default: 'AccessToken' }),
          mayAct: optional(
            choice('MayAct', {
              Required: 'the claim may_act of the token of the user names the actor',
            }),
            'Whether the token of the user must allow the actor.',
          ),
        },
        {
          rules: [
            rule<{ readonly tokenType?: string; readonly mayAct?: string }>({
              message: 'mayAct needs tokenType Jwt',
              cel: "!has(self.mayAct) || (has(self.tokenType) && self.tokenType == 'Jwt')",
              holds: ({ tokenType: type, mayAct }) => mayAct === undefined || type === 'Jwt',
              at: 'mayAct',
            }),
          ],
        },
      ),
      'The token of the party that acts for the user.',
    ),
    ...target,
    requestedTokenType: optional(
      choice('RequestedTokenType', {
        AccessToken: 'an access token',
        Jwt: 'a JSON Web Token',
        IdToken: 'an ID token',
      }),
      'Type of the token to ask for.',
    ),
    additionalParams: optional(
      map(celExpression, { keys: parameterName, max: 64 }),
      'Expressions of further parameters of the token request. If an expression has no value, the request fails with 500.',
    ),
    ...common,
  },
  { rules: endpointRules },
)

const crossAppEndpoint = object(
  'CrossAppEndpoint',
  {
    ...endpointFields,
    clientAuth: required(clientAuth, 'How the gateway authenticates at the endpoint.'),
  },
  { rules: endpointRules },
)

const crossAppAccess = object('CrossAppAccess', {
  identityProvider: required(
    crossAppEndpoint,
    'Token endpoint of the identity provider of the users, which issues the assertion (ID-JAG).',
  ),
  resourceAuthorizationServer: required(
    crossAppEndpoint,
    'Token endpoint that gives an access token for the assertion.',
  ),
  audience: required(longString, 'Issuer of the authorization server of the resource.'),
  resources: optional(texts, 'URLs of the resource.'),
  scopes: optional(list(shortString, { max: 64 }), 'Scopes of the assertion.'),
  accessTokenScopes: optional(
    list(shortString, { max: 64 }),
    'Scopes of the access token. If not set, `scopes`; an empty list asks for none.',
  ),
  subjectToken: optional(sentToken('IdToken'), 'The token of the user.'),
  ...common,
})

const pageURL = text({
  name: 'ConsentPageURL',
  min: 1,
  max: 1024,
  pattern: '^https?://[^/?#@\\s]+/[^?#\\s]+$',
  expects: 'a URL of the form https://HOST/PATH',
})

const userConsent = object(
  'OAuthUserConsent',
  {
    ...endpointFields,
    authorizationEndpoint: optional(
      longString,
      'URL of the authorization endpoint. If not set, the metadata of the issuer names it.',
    ),
    clientAuth: required(clientAuth, 'How the gateway authenticates at the endpoint.'),
    redirectURI: required(
      pageURL,
      'URL of the consent page of the gateway, as registered at the authorization server. A route with `traffic.consentPages` must serve it. Each service needs a different one.',
    ),
    displayName: optional(
      shortString,
      'Name of the service on the page. If not set, the host of its authorization server.',
    ),
    scopes: optional(list(shortString, { min: 1, max: 64 }), 'Scopes to ask for.'),
    resources: optional(texts, 'Values of `resource`: URLs that the token is for (RFC 8707).'),
    additionalParams: optional(
      map(longString, { keys: parameterName, max: 64 }),
      'Further parameters of the authorization request.',
    ),
    sealingKeysRef: optional(
      localReference('Secret'),
      'Secret whose entries are keys of at least 32 bytes for the encryption of tokens. The entry whose name sorts last encrypts, and all of them decrypt. If not set, the key of the gateway is used.',
    ),
    defaultTtl: optional(duration, {
      doc: 'Lifetime of tokens if the endpoint does not name one.',
      default: '1h',
    }),
    dpop: common.dpop,
    location: common.location,
  },
  {
    rules: [
      ...endpointRules,
      rule<{ readonly issuer?: string; readonly authorizationEndpoint?: string }>({
        message: 'authorizationEndpoint must be set unless issuer is',
        cel: 'has(self.issuer) || has(self.authorizationEndpoint)',
        holds: ({ issuer, authorizationEndpoint }) =>
          (issuer ?? authorizationEndpoint) !== undefined,
        at: 'authorizationEndpoint',
      }),
    ],
  },
)

const jwtSign = object('JwtSign', {
  ...signing,
  claims: optional(
    map(celExpression, { keys: tinyString, max: 64 }),
    'Expressions of claims by name. `iat` and `exp` are always added. If an expression has no value, the request fails with 500.',
  ),
  ttl: optional(duration, { doc: 'Lifetime of a token.', default: '300s' }),
  location: common.location,
})

const methods = [
  'key',
  'secretRef',
  'passthrough',
  'aws',
  'azure',
  'gcp',
  'oauthClientCredentials',
  'oauthTokenExchange',
  'crossAppAccess',
  'oauthUserConsent',
  'jwtSign',
] as const

const keyFields = {
  key: optional(text({ max: 2048 }), {
    doc: 'Value of the Authorization header; Bearer is added to a value without a scheme. A Secret is safer.',
    secret: 'value',
  }),
  secretRef: optional(
    secretKeyReference('AuthorizationReference', 'Authorization'),
    'Secret with the value of the Authorization header.',
  ),
  passthrough: optional(
    object('BackendAuthPassthrough', {}),
    'Forwards the token of the client, which a JWT or API key policy has verified and removed.',
  ),
  aws: optional(awsAuth, 'Signs requests for AWS (Signature Version 4).'),
} as const

/**
 * Credentials of the services that guards call. Each place of the whole schema would make the custom resource
 * definition larger by 47 KB, and these services use keys.
 */
export const keyAuthSchema = object('BackendKeyAuth', keyFields, {
  rules: [exactlyOneOf('key', 'secretRef', 'passthrough', 'aws')],
})

export const backendAuthSchema = object(
  'BackendAuth',
  {
    ...keyFields,
    azure: optional(azureAuth, 'Sends a token of Microsoft Entra.'),
    gcp: optional(gcpAuth, 'Sends a token of Google.'),
    oauthClientCredentials: optional(
      clientCredentials,
      'Sends a token that the gateway gets for itself (RFC 6749 section 4.4).',
    ),
    oauthTokenExchange: optional(
      tokenExchange,
      'Sends a token that the gateway gets in exchange for the one of the user.',
    ),
    crossAppAccess: optional(
      crossAppAccess,
      'Sends a token that the gateway gets for an assertion of the identity provider of the user (ID-JAG).',
    ),
    oauthUserConsent: optional(
      userConsent,
      'Sends a token that the gateway got from the authorization server of the service with the consent of the user (authorization code).',
    ),
    jwtSign: optional(jwtSign, 'Sends a token that the gateway signs for each request.'),
    location: optional(
      credentialPlacement,
      'Where the request has the value of key, secretRef or passthrough. If not set, in `Authorization`.',
    ),
    credentials: optional(
      list(
        object('BackendCredential', {
          location: required(credentialPlacement, 'Where the request has the value.'),
          secretRef: required(
            secretKeyReference('CredentialReference', 'Authorization'),
            'Secret with the value.',
          ),
        }),
        { min: 1, max: 8 },
      ),
      'Further values that requests carry.',
    ),
  },
  {
    rules: [
      atMostOneOf(...methods),
      atLeastOneOf(...methods, 'credentials'),
      rule<Readonly<Record<string, unknown>>>({
        message: 'location is only for key, secretRef and passthrough',
        cel: '!has(self.location) || has(self.key) || has(self.secretRef) || has(self.passthrough)',
        holds: ({ location, key, secretRef, passthrough }) =>
          location === undefined || (key ?? secretRef ?? passthrough) !== undefined,
        at: 'location',
      }),
    ],
  },
)

export type BackendAuthSpec = Infer<typeof backendAuthSchema>
export type ClientAuthSpec = Infer<typeof clientAuth>
export type EndpointSpec = Pick<
  Infer<typeof clientCredentials>,
  'url' | 'issuer' | 'backendRef' | 'path'
> & { readonly clientAuth?: ClientAuthSpec }
export type SentTokenSpec = NonNullable<Infer<typeof tokenExchange>['subjectToken']>
export type SigningSpec = Pick<Infer<typeof jwtSign>, 'signingKeyRef' | 'alg' | 'kid'>
export type CommonSpec = Pick<Infer<typeof clientCredentials>, 'location' | 'cache' | 'dpop'>

/** Schemas for token validation and authorization, which HTTP and MCP policies share. */

import { isCredentialParameter } from '../../secrets/credential-names.ts'
import { choice, type Infer, list, object, optional, required, text } from '../field.ts'
import { withoutHost } from '../host.ts'
import { exactlyOneOf, rule } from '../rules.ts'
import { celExpression, duration, plainHeaderName, tinyString } from '../strings.ts'
import { backendObjectReference } from './references.ts'

export const jwtMode = choice('JWTAuthenticationMode', {
  Strict: 'a valid token of a configured issuer must be present',
  Optional: 'a token is validated if present; requests without one pass',
  Permissive: 'no request is refused; the claims of a valid token stay visible to later steps',
})

export const credentialMode = choice('AuthenticationMode', {
  Strict: 'valid credentials must be present',
  Optional: 'credentials are validated if present; requests without them pass',
})

export const audiences = list(text({ max: 2048 }), { min: 1, max: 64 })

/** An endpoint that serves a JSON Web Key Set (RFC 7517). */
export const remoteJwks = object(
  'RemoteJWKS',
  {
    jwksPath: required(
      withoutHost(text({ min: 1, max: 2000 })),
      'Path of the key set, relative to the root of the server.',
    ),
    cacheDuration: optional(duration, {
      doc: 'How long fetched keys are used before they are fetched again.',
      default: '5m',
    }),
    backendRef: required(
      backendObjectReference,
      'Service or static GatewayBackend that serves the keys; a GatewayPolicy with backend.tls on it decides TLS.',
    ),
  },
  {
    advice: {
      remote: 'jwksPath and backendRef stand directly under this field',
      inline: 'an inline key set is not possible here; give jwksPath and backendRef',
    },
  },
)
export type RemoteJwks = Infer<typeof remoteJwks>

/** Logs and records find credentials in a query by the names of parameters. */
const credentialParameter = text({
  name: 'CredentialParameter',
  min: 1,
  max: 64,
  rules: [
    rule<string>({
      message: 'must be a name that logs mask, such as access_token or api_key',
      holds: (value) => isCredentialParameter(value),
    }),
  ],
})

const places = {
  header: optional(
    object('AuthorizationHeaderLocation', {
      name: required(plainHeaderName, 'Name of the header.'),
      prefix: optional(
        text({ min: 1, max: 64 }),
        'Text before the credential. If it ends with a space, it is a scheme such as `Bearer `, whose case does not matter.',
      ),
    }),
    'A header.',
  ),
  queryParameter: optional(
    object('AuthorizationQueryLocation', {
      name: required(credentialParameter, 'Name of the parameter.'),
    }),
    'A parameter of the query.',
  ),
  cookie: optional(
    object('AuthorizationCookieLocation', {
      name: required(tinyString, 'Name of the cookie.'),
    }),
    'A cookie.',
  ),
} as const

/** Where clients put a credential. Exactly one place is set. */
export const credentialLocation = object(
  'AuthorizationExtractionLocation',
  {
    ...places,
    expression: optional(
      celExpression,
      'An expression that gives the credential as a string. It stays in the request.',
    ),
  },
  { rules: [exactlyOneOf('header', 'queryParameter', 'cookie', 'expression')] },
)

/** Where the gateway puts a credential. Exactly one place is set. */
export const credentialPlacement = object('AuthorizationLocation', places, {
  rules: [exactlyOneOf('header', 'queryParameter', 'cookie')],
})
export type CredentialPlacement = Infer<typeof credentialPlacement>

export const authorization = object('Authorization', {
  action: optional(
    choice('AuthorizationPolicyAction', {
      Allow: 'a request that matches is allowed; one that matches no Allow rule is refused',
      Deny: 'a request that matches is refused',
      Require: 'a request that does not match is refused',
    }),
    { doc: 'Whether a match allows or refuses the request.', default: 'Allow' },
  ),
  policy: required(
    object('AuthorizationPolicy', {
      matchExpressions: required(
        list(celExpression, { max: 256 }),
        'The policy matches if any of these is true.',
      ),
    }),
    'Expressions that decide whether the rule matches.',
  ),
})

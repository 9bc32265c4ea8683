import { holdsPrivateKey } from '../../../engines/auth/jwt/key-set.ts'
import {
  boolean,
  choice,
  type Infer,
  list,
  object,
  optional,
  required,
  text,
} from '../../../ground/schema/field.ts'
import { withoutHost } from '../../../ground/schema/host.ts'
import { exactlyOneOf, rule } from '../../../ground/schema/rules.ts'
import {
  audiences,
  credentialLocation,
  jwtMode,
  remoteJwks,
} from '../../../ground/schema/shapes/authentication.ts'
import {
  backendObjectReference,
  clientSecretReference,
} from '../../../ground/schema/shapes/references.ts'
import { duration, shortString, tinyString } from '../../../ground/schema/strings.ts'
import { mcpSignIn } from '../../backends/mcp/auth/schema.ts'

const inlineKeys = text({
  min: 2,
  max: 65_536,
  rules: [
    // Part of the schema, so that private keys are rejected before the object is stored.
    rule<string>({
      message: 'must hold public keys only: this one has private or symmetric key material',
      holds: (value) => !holdsPrivateKey(value),
    }),
  ],
})

const jwks = object(
  'JWKS',
  {
    remote: optional(remoteJwks, 'An endpoint that serves the keys.'),
    inline: optional(inlineKeys, 'A JSON Web Key Set as text (RFC 7517).'),
  },
  { rules: [exactlyOneOf('remote', 'inline')] },
)

const introspection = object('TokenIntrospection', {
  backendRef: required(
    backendObjectReference,
    'Service or GatewayBackend of the authorization server; a GatewayPolicy with backend.tls on it decides TLS.',
  ),
  path: required(
    withoutHost(text({ min: 1, max: 2000 })),
    'Path of the introspection endpoint, relative to the root of the server.',
  ),
  clientAuth: required(
    object('IntrospectionClientAuth', {
      clientId: required(shortString, 'Client id of the gateway at the authorization server.'),
      secretRef: required(clientSecretReference, 'Secret with the client secret.'),
      method: optional(
        choice('IntrospectionClientAuthMethod', {
          ClientSecretBasic: 'in the Authorization header',
          ClientSecretPost: 'in the form',
        }),
        { doc: 'How the client secret is sent.', default: 'ClientSecretBasic' },
      ),
    }),
    'How the gateway authenticates at the endpoint.',
  ),
  cacheDuration: optional(duration, {
    doc: 'How long an answer is used before the endpoint is asked again, but not longer than the token is valid. A revoked token is accepted for this time.',
    default: '1m',
  }),
})

const provider = object(
  'JWTProvider',
  {
    issuer: required(shortString, 'Value of the iss claim.'),
    audiences: optional(
      audiences,
      'The aud claim must have one of these values. If not set, any audience is accepted.',
    ),
    requiredClaims: optional(
      list(tinyString, { min: 1, max: 32 }),
      'Claims that a token must have. `exp` is always required of tokens that are verified with keys.',
    ),
    jwks: optional(jwks, 'Keys with which the issuer signs.'),
    introspection: optional(
      introspection,
      'Asks the issuer about each token (RFC 7662), such as opaque ones. One provider of a policy can have it.',
    ),
  },
  { rules: [exactlyOneOf('jwks', 'introspection')] },
)

export const jwtAuthenticationSchema = object('JWTAuthentication', {
  mode: optional(jwtMode, { doc: 'What happens without a valid token.', default: 'Strict' }),
  providers: required(list(provider, { min: 1, max: 64 }), 'Issuers whose tokens are accepted.'),
  location: optional(
    credentialLocation,
    'Where the token is. If not set, in `Authorization` with the scheme `Bearer`, or `DPoP` if it is bound to a key.',
  ),
  dpop: optional(
    object('DPoP', {
      required: optional(boolean(), {
        doc: 'Whether tokens that are not bound to a key of the client are refused.',
        default: 'false',
      }),
      nonces: optional(boolean(), {
        doc: 'Whether proofs must contain a nonce of the gateway, so that they cannot be made in advance, and clocks of clients do not matter.',
        default: 'false',
      }),
    }),
    'Proofs that the client has the key of its token (RFC 9449). Bound tokens always need one.',
  ),
  mcp: optional(
    mcpSignIn,
    'The route is an MCP server: clients find out where to get tokens, and sign in. Needs one provider and mode Strict.',
  ),
})

export type JwtAuthenticationSpec = Infer<typeof jwtAuthenticationSchema>
export type ProviderSpec = JwtAuthenticationSpec['providers'][number]
export type IntrospectionSpec = NonNullable<ProviderSpec['introspection']>

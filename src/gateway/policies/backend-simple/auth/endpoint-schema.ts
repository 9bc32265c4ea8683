/** What users can write about token endpoints, and how the gateway authenticates there. */
import { choice, object, optional, required, text } from '../../../../ground/schema/field.ts'
import { exactlyOneOf, rule } from '../../../../ground/schema/rules.ts'
import {
  backendObjectReference,
  clientSecretReference,
  secretKeyReference,
} from '../../../../ground/schema/shapes/references.ts'
import { longString, shortString } from '../../../../ground/schema/strings.ts'

const url = text({
  name: 'TokenEndpointURL',
  min: 1,
  max: 2048,
  pattern: '^https?://[^/?#@\\s]+(/[^#\\s]*)?$',
  expects: 'a URL of the form https://HOST/PATH',
})

const path = text({
  name: 'TokenEndpointPath',
  min: 1,
  max: 1024,
  pattern: '^/[^#\\s]*$',
  expects: 'a path such as /oauth2/token',
})

const signingAlgorithm = choice('SigningAlgorithm', {
  RS256: 'RSA with PKCS #1 v1.5 and SHA-256',
  RS384: 'RSA with PKCS #1 v1.5 and SHA-384',
  RS512: 'RSA with PKCS #1 v1.5 and SHA-512',
  PS256: 'RSA with PSS and SHA-256',
  ES256: 'ECDSA on P-256',
  ES384: 'ECDSA on P-384',
})

export const signing = {
  signingKeyRef: required(
    secretKeyReference('SigningKeyReference', 'signingKey'),
    'Secret with the private key in PEM. RSA keys must have at least 2048 bits.',
  ),
  alg: optional(signingAlgorithm, { doc: 'Algorithm of the signature.', default: 'RS256' }),
  kid: optional(shortString, 'Id of the key, in the header of the token.'),
} as const

export const clientAuth = object(
  'OAuthClientAuth',
  {
    clientId: required(shortString, 'Client id of the gateway at the authorization server.'),
    secretRef: optional(clientSecretReference, 'Secret with the client secret.'),
    method: optional(
      choice('OAuthClientAuthMethod', {
        ClientSecretBasic: 'the client secret in the Authorization header',
        ClientSecretPost: 'the client secret in the form',
        PrivateKeyJwt: 'a token that the gateway signs (RFC 7523)',
      }),
      { doc: 'How the gateway authenticates.', default: 'ClientSecretBasic' },
    ),
    privateKeyJwt: optional(
      object('PrivateKeyJwt', {
        ...signing,
        assertionAudience: required(
          longString,
          'Value of the aud claim: what the authorization server expects, which is its issuer or the URL of its token endpoint.',
        ),
        certificateRef: optional(
          secretKeyReference('CertificateReference', 'tls.crt'),
          'Secret with the certificate in PEM that the header of the token names.',
        ),
        certificateHeader: optional(
          choice('CertificateHeader', { x5c: 'the certificate', 'x5t#S256': 'its digest' }),
          { doc: 'How the header names the certificate.', default: 'x5c' },
        ),
      }),
      'The key of `PrivateKeyJwt`.',
    ),
  },
  {
    rules: [
      exactlyOneOf('secretRef', 'privateKeyJwt'),
      rule<{ readonly method?: string; readonly privateKeyJwt?: object }>({
        message: 'privateKeyJwt must be set if method is PrivateKeyJwt, and only then',
        cel: "(has(self.method) && self.method == 'PrivateKeyJwt') == has(self.privateKeyJwt)",
        holds: ({ method, privateKeyJwt }) =>
          (method === 'PrivateKeyJwt') === (privateKeyJwt !== undefined),
      }),
    ],
  },
)

export const endpointFields = {
  url: optional(url, 'URL of the token endpoint.'),
  issuer: optional(
    url,
    'Issuer whose metadata names the token endpoint (OpenID Connect Discovery, RFC 8414).',
  ),
  backendRef: optional(
    backendObjectReference,
    'Service or GatewayBackend of the token endpoint; a GatewayPolicy with backend.tls on it decides TLS.',
  ),
  path: optional(path, {
    doc: 'Path of the token endpoint at backendRef.',
    default: '/',
  }),
} as const

export const endpointRules = [
  exactlyOneOf('url', 'issuer', 'backendRef'),
  rule<{ readonly path?: string; readonly backendRef?: object }>({
    message: 'path is only for backendRef',
    cel: '!has(self.path) || has(self.backendRef)',
    holds: ({ path, backendRef }) => path === undefined || backendRef !== undefined,
    at: 'path',
  }),
]

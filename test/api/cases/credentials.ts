/** Credentials for backends: at most one method, with or without further values. */
import { backendPlace, type CaseGroup, policyPlace } from './case.ts'

const secretRef = { name: 'a' }
const places = [
  policyPlace('spec.backend.auth'),
  backendPlace('spec.policies.auth', { spec: { static: { host: 'a.example', port: 80 } } }),
]
const names =
  'key, secretRef, passthrough, aws, azure, gcp, oauthClientCredentials, oauthTokenExchange, crossAppAccess, oauthUserConsent, jwtSign'
const clientAuth = { clientId: 'a', secretRef }
const url = 'https://login.example.com/token'
const methods: Readonly<Record<string, object | string>> = {
  key: 'k',
  secretRef,
  passthrough: {},
  aws: { secretRef },
  azure: {},
  gcp: {},
  oauthClientCredentials: { url, clientAuth },
  oauthTokenExchange: { url },
  oauthUserConsent: {
    issuer: 'https://login.example.com',
    clientAuth,
    redirectURI: 'https://gateway.example.com/consent/a',
  },
  jwtSign: { signingKeyRef: { name: 'a' } },
  credentials: [{ location: { cookie: { name: 'token' } }, secretRef }],
}

/** Settings of which only one may be set, or that need each other. */
const refusals: readonly (readonly [
  written: string,
  value: object,
  at: string,
  message: string,
])[] = [
  ['nothing', {}, '', `at least one of ${names}, credentials must be set`],
  ['key and aws', { key: 'k', aws: {} }, '', `at most one of ${names} may be set`],
  [
    'location and aws',
    { aws: {}, location: { header: { name: 'x' } } },
    '.location',
    'location is only for key, secretRef and passthrough',
  ],
  [
    'a token endpoint with url and issuer',
    { oauthClientCredentials: { url, issuer: url, clientAuth } },
    '.oauthClientCredentials',
    'exactly one of url, issuer, backendRef must be set',
  ],
  [
    'a token endpoint with url and path',
    { oauthClientCredentials: { url, path: '/token', clientAuth } },
    '.oauthClientCredentials.path',
    'path is only for backendRef',
  ],
  [
    'PrivateKeyJwt with a client secret',
    { oauthTokenExchange: { url, clientAuth: { ...clientAuth, method: 'PrivateKeyJwt' } } },
    '.oauthTokenExchange.clientAuth',
    'privateKeyJwt must be set if method is PrivateKeyJwt, and only then',
  ],
  [
    'a token of the user without an authorization endpoint',
    {
      oauthUserConsent: { url, clientAuth, redirectURI: 'https://gateway.example.com/consent/a' },
    },
    '.oauthUserConsent.authorizationEndpoint',
    'authorizationEndpoint must be set unless issuer is',
  ],
  [
    'an audience of an access token',
    { gcp: { audience: 'a' } },
    '.gcp.audience',
    'audience is only for type IdToken',
  ],
]

export const credentialCases: readonly CaseGroup[] = [
  {
    id: 'BackendAuth.exactlyOneOf',
    cases: places.flatMap((at) => [
      ...refusals.map(([written, value, field, message]) => ({
        written: `${at.path} with ${written}`,
        kind: at.kind,
        spec: at.spec(value),
        refusedAt: `${at.path}${field}`,
        message,
      })),
      ...Object.entries(methods).map(([name, value]) => ({
        written: `${at.path} with ${name} alone`,
        kind: at.kind,
        spec: at.spec({ [name]: value }),
      })),
    ]),
  },
]

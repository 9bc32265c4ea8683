import { parseDurationMs } from '../../../ground/base/duration.ts'
import { sessionKeyRef } from '../../../ground/model/mcp-targets.ts'
import { calledBackend, type References } from '../../../ground/model/references.ts'
import {
  boolean,
  choice,
  type Infer,
  list,
  map,
  object,
  optional,
  required,
  text,
} from '../../../ground/schema/field.ts'
import {
  backendObjectReference,
  clientSecretReference,
  localReference,
} from '../../../ground/schema/shapes/references.ts'
import {
  duration,
  plainHeaderName,
  shortString,
  tinyString,
} from '../../../ground/schema/strings.ts'
import type { OidcConfig } from '../../sign-in/config.ts'
import { pathOf } from '../../sign-in/navigation.ts'
import { clientSecretOf, sealingKeysOf } from '../client-secret.ts'
import { type Compiled, definePolicy, type PolicyProblem } from '../define.ts'

const url = text({
  name: 'HTTPURL',
  min: 1,
  max: 2048,
  pattern: '^https?://[^/?#@\\s]+(/[^?#\\s]*)?$',
  expects: 'a URL of the form https://HOST/PATH without query and fragment',
})
const endpoint = text({
  name: 'EndpointURL',
  min: 1,
  max: 2048,
  pattern: '^https?://[^/?#@\\s]+(/[^#\\s]*)?$',
  expects: 'a URL of the form https://HOST/PATH',
})
const path = text({
  name: 'RequestPath',
  min: 1,
  max: 1024,
  pattern: '^/([^/?#\\\\\\s][^?#\\\\\\s]*)?$',
  expects: 'a path such as /logout',
})
const pathOrURL = text({
  name: 'PathOrURL',
  min: 1,
  max: 2048,
  pattern: '^(https?://[^/?#@\\s]+)?/([^/?#\\\\\\s][^?#\\\\\\s]*)?$',
  expects: 'a path such as /oauth2/callback, or a URL with a path',
})

const oidcSchema = object('OIDC', {
  issuer: required(url, 'Issuer of the provider. Its endpoints are discovered.'),
  clientId: required(shortString, 'Client id of the gateway at the provider.'),
  clientSecretRef: optional(
    clientSecretReference,
    'Secret with the client secret. If not set, the gateway is a public client.',
  ),
  tokenEndpointAuth: optional(
    choice('OIDCTokenEndpointAuth', {
      ClientSecretBasic: 'in the Authorization header',
      ClientSecretPost: 'in the form',
    }),
    { doc: 'How the client secret is sent to the provider.', default: 'ClientSecretBasic' },
  ),
  redirectURI: optional(pathOrURL, {
    doc: 'Where the provider sends the browser back. A path is taken on the host of the request. The policy must apply to it.',
    default: '/oauth2/callback',
  }),
  scopes: optional(
    list(shortString, { max: 64 }),
    'Scopes to ask for. `openid` is always added; many providers give a refresh token only for `offline_access`.',
  ),
  resources: optional(
    list(endpoint, { max: 16 }),
    'Resources that the access token is for (RFC 8707).',
  ),
  authorizationParameters: optional(
    map(text({ max: 1024 }), { keys: tinyString, max: 16 }),
    'Further parameters of the authorization request, such as `audience` or `access_type`.',
  ),
  authorizationEndpoint: optional(endpoint, 'Replaces the discovered endpoint.'),
  tokenEndpoint: optional(endpoint, 'Replaces the discovered endpoint.'),
  endSessionEndpoint: optional(endpoint, 'Replaces the discovered endpoint.'),
  jwksURI: optional(
    endpoint,
    'Replaces the discovered key set. With authorizationEndpoint and tokenEndpoint, nothing is discovered.',
  ),
  backendRef: optional(
    backendObjectReference,
    'Service or GatewayBackend through which the host of the issuer is reached, with its policies. If not set, the host name is resolved.',
  ),
  acrValues: optional(
    list(shortString, { min: 1, max: 16 }),
    'The sign-in must have one of these authentication context classes (`acr`).',
  ),
  maxAge: optional(duration, 'The user must have entered credentials within this time.'),
  sessionDuration: optional(duration, {
    doc: 'How long a user stays signed in, if the provider renews the tokens.',
    default: '168h',
  }),
  signInTimeout: optional(duration, { doc: 'How long a sign-in may take.', default: '10m' }),
  refreshToken: optional(boolean(), {
    doc: 'Whether tokens are renewed. If not, a session ends with its access token.',
    default: 'true',
  }),
  defaultTokenTTL: optional(duration, {
    doc: 'Lifetime of tokens if the provider does not name one.',
    default: '1h',
  }),
  sessionKeysRef: optional(
    localReference('Secret'),
    'Secret whose entries are keys of at least 32 bytes that seal the cookies. The entry whose name is the last one in alphabetical order seals, and all of them open. If not set, the key of the gateway.',
  ),
  logoutPath: optional(path, { doc: 'Path that signs the user out.', default: '/logout' }),
  postLogoutRedirectURI: optional(
    pathOrURL,
    'Where the provider sends the browser after the sign-out. It must be registered at the provider. If not set, the provider shows its own page.',
  ),
  backChannelLogoutPath: optional(
    path,
    'Path at which the provider reports sign-outs (OpenID Connect Back-Channel Logout).',
  ),
  frontChannelLogoutPath: optional(
    path,
    'Path that the provider opens in a frame at sign-out (OpenID Connect Front-Channel Logout).',
  ),
  passThroughAuthHeader: optional(boolean(), {
    doc: 'Whether requests without a session pass if another authentication policy has accepted their credentials.',
    default: 'false',
  }),
  forwardAccessToken: optional(boolean(), {
    doc: 'Whether the backend gets the access token as `Authorization: Bearer`.',
    default: 'false',
  }),
  forwardIDToken: optional(
    object('OIDCForwardIDToken', {
      header: required(plainHeaderName, 'Name of the header.'),
    }),
    'Sends the ID token to the backend.',
  ),
})
type OidcSpec = Infer<typeof oidcSchema>

/** Parameters that the gateway sets itself. */
const ownParameters: ReadonlySet<string> = new Set([
  'response_type',
  'response_mode',
  'client_id',
  'redirect_uri',
  'scope',
  'state',
  'nonce',
  'code_challenge',
  'code_challenge_method',
  'acr_values',
  'max_age',
  'resource',
  'request',
  'request_uri',
])

/** If a Secret or backend is missing, all requests fail: the policy cannot check sessions or sign in. */
function compile(spec: OidcSpec, references: References): Compiled<OidcConfig> {
  const invalid = urlProblems(spec)
  const problems: PolicyProblem[] = [
    ...invalid,
    ...(invalid.length > 0 ? [] : pathProblems(spec)),
    ...parameterProblems(spec),
  ]
  const found = <Value>(path: string, value: Value | string): Value | undefined => {
    if (typeof value !== 'string') return value
    problems.push({ path, message: value })
    return undefined
  }
  const secret =
    spec.clientSecretRef &&
    found('clientSecretRef', clientSecretOf(spec.clientSecretRef, references))
  const keys =
    spec.sessionKeysRef &&
    found('sessionKeysRef', sealingKeysOf(spec.sessionKeysRef.name, references))
  const target = spec.backendRef && found('backendRef', calledBackend(references, spec.backendRef))
  if (problems.length > 0) return { problems }
  const broken = references.issuerProblem({
    issuer: spec.issuer,
    jwksURI: spec.jwksURI,
    isDiscovered: !(spec.authorizationEndpoint && spec.tokenEndpoint && spec.jwksURI),
    backendRef: spec.backendRef,
  })
  if (broken !== undefined) {
    const message = `${broken}; new sign-ins fail until this works, and the gateway retries`
    problems.push({ path: 'issuer', message, partial: true })
  }
  const notes = spec.issuer.startsWith('http:')
    ? [
        'issuer: the provider is reached without TLS, so that others on the network can read and change tokens',
      ]
    : []
  const secrets = [...(secret ? [secret] : []), ...(keys ?? [sessionKeyRef])]
  return {
    config: {
      ...defaultsOf(spec),
      ...(secret && { clientSecret: secret.digest }),
      ...(target && { target }),
      keys: keys?.map(({ digest }) => digest) ?? [],
    },
    problems,
    secrets,
    notes,
  }
}

const ms = (text: string | undefined, byDefault: string): number =>
  parseDurationMs(text ?? byDefault) ?? 0

/** The settings that need no other object. */
function defaultsOf(spec: OidcSpec): Omit<OidcConfig, 'keys'> {
  const { issuer, clientId, scopes = [], resources = [], acrValues = [] } = spec
  const { authorizationEndpoint, tokenEndpoint, endSessionEndpoint, jwksURI } = spec
  const { postLogoutRedirectURI, backChannelLogoutPath, frontChannelLogoutPath } = spec
  return {
    issuer,
    clientId,
    tokenEndpointAuth: spec.tokenEndpointAuth ?? 'ClientSecretBasic',
    scopes: [...new Set(['openid', ...scopes])],
    resources,
    authorizationParameters: spec.authorizationParameters ?? {},
    authorizationEndpoint,
    tokenEndpoint,
    endSessionEndpoint,
    jwksURI,
    acrValues,
    ...(spec.maxAge !== undefined && { maxAgeMs: ms(spec.maxAge, '0s') }),
    redirectURI: spec.redirectURI ?? '/oauth2/callback',
    logoutPath: spec.logoutPath ?? '/logout',
    postLogoutRedirectURI,
    backChannelLogoutPath,
    frontChannelLogoutPath,
    signInMs: ms(spec.signInTimeout, '10m'),
    sessionMs: ms(spec.sessionDuration, '168h'),
    defaultTokenMs: ms(spec.defaultTokenTTL, '1h'),
    refreshToken: spec.refreshToken ?? true,
    passThroughAuthHeader: spec.passThroughAuthHeader ?? false,
    forwardAccessToken: spec.forwardAccessToken ?? false,
    forwardIDToken: spec.forwardIDToken?.header.toLowerCase(),
  }
}

const urlFields = [
  ...(['issuer', 'authorizationEndpoint', 'tokenEndpoint', 'endSessionEndpoint'] as const),
  ...(['jwksURI', 'redirectURI', 'postLogoutRedirectURI'] as const),
]

/** Finds URLs that the schema cannot tell from valid ones, for example with the port 99999. */
const urlProblems = (spec: OidcSpec): PolicyProblem[] =>
  urlFields.flatMap((path) => {
    const url = spec[path]
    const isValid = url === undefined || url.startsWith('/') || URL.canParse(url)
    return isValid ? [] : [{ path, message: `${url} is not a valid URL` }]
  })

/** The gateway answers each of these paths itself, so they must differ. */
function pathProblems(spec: OidcSpec): PolicyProblem[] {
  const { redirectURI = '/oauth2/callback', logoutPath = '/logout' } = spec
  const paths = {
    redirectURI: pathOf(redirectURI),
    logoutPath,
    backChannelLogoutPath: spec.backChannelLogoutPath,
    frontChannelLogoutPath: spec.frontChannelLogoutPath,
  }
  const known = new Map<string, string>()
  const problems: PolicyProblem[] = []
  for (const [field, path] of Object.entries(paths)) {
    const other = path && known.get(path)
    if (path) known.set(path, field)
    if (other) problems.push({ path: field, message: `${path} is already the path of ${other}` })
  }
  if (paths.redirectURI === '/') {
    problems.push({ path: 'redirectURI', message: 'the path must not be /, which is a page' })
  }
  return problems
}

const parameterProblems = ({ authorizationParameters = {} }: OidcSpec): PolicyProblem[] =>
  Object.keys(authorizationParameters)
    .filter((name) => ownParameters.has(name))
    .map((name) => ({
      path: `authorizationParameters.${name}`,
      message: 'the gateway sets this parameter itself',
    }))

/** Signs browsers in at an OpenID provider. */
export const oidc = definePolicy({
  section: 'traffic',
  field: 'oidc',
  schema: oidcSchema,
  doc: 'Signs users of browsers in at an OpenID provider, and keeps them signed in.',
  security: true,
  preRouting: true,
  compile,
  apply: () => import('./apply.ts'),
})

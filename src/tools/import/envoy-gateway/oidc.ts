/** Converts `oidc` of SecurityPolicy. */
import { type Conversion, compact, type Fields, filled } from '../conversion.ts'
import type { SourceField } from '../field.ts'
import type { Backends } from './backends.ts'

export function oidcOf(
  oidc: SourceField,
  backends: Backends,
  result: Conversion,
): Fields | undefined {
  if (!oidc.isSet) return undefined
  const provider = oidc.get('provider')
  provider.ignore('backendSettings')
  const single = provider.get('backendRef')
  const ref = (provider.items('backendRefs')[0] ?? (single.isSet ? single : undefined))?.object()
  const clientId = oidc.text('clientID') ?? clientIdOf(oidc.get('clientIDRef'), result)
  reportCookies(oidc)
  return compact({
    issuer: provider.text('issuer'),
    authorizationEndpoint: provider.text('authorizationEndpoint'),
    tokenEndpoint: provider.text('tokenEndpoint'),
    endSessionEndpoint: provider.text('endSessionEndpoint'),
    backendRef: ref === undefined ? undefined : backends.reference(ref),
    clientId,
    // The entry `client-secret` is read as it is.
    clientSecretRef: { name: String(oidc.get('clientSecret').object().name) },
    scopes: filled(oidc.texts('scopes')),
    resources: filled(oidc.texts('resources')),
    redirectURI: redirectOf(oidc.get('redirectURL')),
    logoutPath: oidc.text('logoutPath'),
    refreshToken: oidc.flag('refreshToken'),
    defaultTokenTTL: durationOf(oidc.get('defaultTokenTTL')),
    sessionDuration: durationOf(oidc.get('defaultRefreshTokenTTL')),
    signInTimeout: durationOf(oidc.get('csrfTokenTTL')),
    forwardAccessToken: oidc.flag('forwardAccessToken'),
    forwardIDToken: oidc.has('forwardIDToken')
      ? { header: oidc.at('forwardIDToken', 'header').text() }
      : undefined,
    passThroughAuthHeader: oidc.flag('passThroughAuthHeader'),
  })
}

/** One sealed cookie of the host takes the place of several ones. */
function reportCookies(oidc: SourceField): void {
  for (const field of ['cookieNames', 'cookieConfig']) {
    oidc.get(field).lose('the session is one sealed cookie with SameSite=Lax', 'changed')
  }
  oidc
    .get('cookieDomain')
    .lose('each host has a session of its own; the provider signs in without asking', 'changed')
  oidc.get('disableTokenEncryption').lose('cookies are always encrypted', 'changed')
  oidc
    .get('denyRedirect')
    .lose('requests of scripts get 401, as the headers of browsers say', 'changed')
}

function clientIdOf(ref: SourceField, result: Conversion): string | undefined {
  if (!ref.isSet) return undefined
  const name = String(ref.object().name)
  const id = result.secretEntries(name, result.namespace)?.['client-id']
  return (
    id ??
    ref.report('protection', `the client id is in Secret ${name}, which is not among the files`)
  )
}

/** Envoy's variables stand for the host of the request, as a path does. */
function redirectOf(field: SourceField): string | undefined {
  const text = field.text()
  if (text === undefined || !text.includes('%')) return text
  return (
    /^%REQ\([^)]*\)%:\/\/%REQ\([^)]*\)%(\/[^%]*)$/.exec(text)?.[1] ??
    field.report('protection', 'the variables of the address have no counterpart')
  )
}

const seconds = { h: 3_600, m: 60, s: 1, ms: 0.001 } as const

/** Gateway API durations have at most five digits in each part. */
function durationOf(field: SourceField): string | undefined {
  const text = field.text()
  if (text === undefined) return undefined
  let total = 0
  for (const [, digits, unit] of text.matchAll(/(\d+)(h|ms|m|s)/g)) {
    total += Number(digits) * seconds[unit as keyof typeof seconds]
  }
  if (total < 1) return undefined
  const [hours, left] = [Math.floor(total / 3_600), Math.ceil(total % 3_600)]
  return [hours > 0 ? `${hours}h` : '', left > 0 ? `${left}s` : ''].join('')
}

/** Converts SecurityPolicy. */
import { type Conversion, compact, type Fields, filled } from '../conversion.ts'
import type { SourceField } from '../field.ts'
import {
  addSecret,
  addStatic,
  corsFields,
  parseAddress,
  quote,
  quoteAll,
  sourceIn,
} from '../targets.ts'
import type { Backends } from './backends.ts'
import { oidcOf } from './oidc.ts'
import { enter, nameIn, targetsOf } from './targets.ts'

export function convertSecurityPolicy(
  field: SourceField,
  backends: Backends,
  result: Conversion,
): void {
  const name = enter(field, result)
  const spec = field.get('spec')
  const refs = targetsOf(spec)
  const oidc = oidcOf(spec.get('oidc'), backends, result)
  const traffic = {
    cors: corsOf(spec.get('cors')),
    basicAuthentication: basicAuthOf(spec.get('basicAuth'), name, result),
    apiKeyAuthentication: apiKeysOf(spec.get('apiKeyAuth'), name, result),
    jwtAuthentication: jwtOf(spec.get('jwt'), oidc !== undefined, result),
    oidc,
    extAuth: extAuthOf(spec.get('extAuth'), backends),
  }
  if (refs.length === 0) return
  result.policy(name, refs, { traffic }, field)
  addAuthorization(spec.get('authorization'), name, refs, result)
}

function corsOf(cors: SourceField): Fields | undefined {
  if (!cors.isSet) return undefined
  const age = cors.text('maxAge')
  const seconds = /^(\d+)s$/.exec(age ?? '')?.[1]
  const minutes = /^(\d+)m$/.exec(age ?? '')?.[1]
  const hours = /^(\d+)h$/.exec(age ?? '')?.[1]
  const maxAge = Number(seconds ?? 0) + Number(minutes ?? 0) * 60 + Number(hours ?? 0) * 3600
  if (age !== undefined && maxAge === 0)
    cors.get('maxAge').report('lost', 'is not a simple duration')
  return compact({
    ...corsFields(cors),
    maxAge: maxAge > 0 ? maxAge : undefined,
  })
}

function basicAuthOf(auth: SourceField, name: string, result: Conversion): Fields | undefined {
  if (!auth.isSet) return undefined
  const source = nameIn(auth.get('users'))
  auth.get('forwardUsernameHeader').lose('use a transformation with basicAuth.username')
  const users = result.secretEntries(source, result.namespace)?.['.htpasswd']
  const secret = result.nameOf('Secret', `${name}-htpasswd`)
  const reason =
    users === undefined
      ? `Secret ${secret} is empty, so that everyone is refused: copy ".htpasswd" of ${source} to ".htaccess"`
      : `the users of Secret ${source} are now in ".htaccess" of Secret ${secret}`
  auth.report('secret', reason)
  const entries: Record<string, string> = users === undefined ? {} : { '.htaccess': users }
  return { secretRef: addSecret(result, secret, entries, auth) }
}

/** Keys of several Secrets become the entries of one. */
export function apiKeysOf(auth: SourceField, name: string, result: Conversion): Fields | undefined {
  if (!auth.isSet) return undefined
  auth.ignore('sanitize')
  auth.get('forwardClientIDHeader').lose('use a transformation with apiKey')
  const secret = result.nameOf('Secret', `${name}-keys`)
  const entries: Record<string, string> = {}
  for (const ref of auth.items('credentialRefs')) {
    const source = nameIn(ref)
    const found = result.secretEntries(source, result.namespace)
    const reason =
      found === undefined
        ? `add the keys of Secret ${source}, which is not among the files, to Secret ${secret}`
        : `the keys of Secret ${source} are now in Secret ${secret}`
    ref.report('secret', reason)
    Object.assign(entries, found)
  }
  const places = auth.get('extractFrom')
  const headers = places.items().flatMap((place) => place.texts('headers'))
  if (!headers.some((header) => header.toLowerCase() === 'authorization')) {
    places.report('changed', 'clients must send the key as "Authorization: Bearer KEY"')
  }
  return { secretRef: addSecret(result, secret, entries, auth) }
}

function jwtOf(jwt: SourceField, hasSignIn: boolean, result: Conversion): Fields | undefined {
  if (!jwt.isSet) return undefined
  // Users of browsers have a session in place of a token. The sign-in refuses requests without either.
  if (hasSignIn) jwt.report('changed', 'claims are those of the session, if a request has one')
  const isOptional = jwt.flag('optional') === true || hasSignIn
  jwt.get('failOpen').lose('tokens are refused if keys cannot be fetched')
  const providers = jwt.items('providers').map((provider) => {
    provider.ignore('name', 'recomputeRoute')
    provider.get('claimToHeaders').lose('use a transformation', 'lost')
    return compact({
      issuer: provider.text('issuer'),
      audiences: filled(provider.texts('audiences')),
      jwks: jwksOf(provider, result),
    })
  })
  const location = locationOf(jwt.items('providers').map((provider) => provider.get('extractFrom')))
  return compact({ mode: isOptional ? 'Optional' : 'Strict', providers, location })
}

/** A policy has one place of tokens, for all providers. */
function locationOf(sources: readonly SourceField[]): Fields | undefined {
  const places = sources.map((source) => [
    ...source.items('headers').map((header) => ({
      header: compact({ name: header.text('name'), prefix: header.text('valuePrefix') }),
    })),
    ...source.texts('cookies').map((name) => ({ cookie: { name } })),
    ...source.texts('params').map((name) => ({ queryParameter: { name } })),
  ])
  const [first = []] = places
  const isSame = places.every((one) => JSON.stringify(one) === JSON.stringify(first))
  if (first.length <= 1 && isSame) return first[0]
  const named = sources.find(({ isSet }) => isSet)
  return named?.refuse('lost', 'a policy has one place of tokens; it is Authorization')
}

export function jwksOf(provider: SourceField, result: Conversion): Fields | undefined {
  const inline = provider.at('localJWKS', 'inline').text()
  provider.get('localJWKS').ignore('type')
  if (inline !== undefined) return { inline }
  const remote = provider.get('remoteJWKS')
  const address = parseAddress(remote.text('uri') ?? '')
  if (address === undefined) {
    return provider.report('protection', 'the key set is neither inline nor at a URL')
  }
  remote.ignore('backendRefs', 'backendRef', 'backendSettings', 'failedRefetchDuration')
  return {
    remote: compact({
      jwksPath: address.path,
      cacheDuration: remote.text('cacheDuration'),
      backendRef: addStatic(result, address, remote),
    }),
  }
}

export function extAuthOf(auth: SourceField, backends: Backends): Fields | undefined {
  if (!auth.isSet) return undefined
  auth.ignore('recomputeRoute', 'includeRouteMetadata', 'statusOnError')
  for (const field of ['timeout', 'contextExtensions']) {
    auth.get(field).lose('has no counterpart', 'lost')
  }
  const failOpen = auth.get('failOpen')
  if (failOpen.flag() === true)
    failOpen.report('stricter', 'requests are refused if the service fails')
  const service = auth.has('grpc') ? auth.get('grpc') : auth.get('http')
  const refs = service.items('backendRefs')
  const ref = (refs[0] ?? service.get('backendRef')).object()
  service.ignore('backendSettings', 'backendRef')
  const maxSize = auth.at('bodyToExtAuth', 'maxRequestBytes').number()
  const path = service.text('path')
  if (path !== undefined)
    service.get('path').report('changed', 'only the answer 200 allows a request')
  const http = compact({
    path:
      path === undefined ? undefined : `${quote(path.replace(/\/$/, ''))} + request.pathAndQuery`,
    allowedRequestHeaders: filled(auth.texts('headersToExtAuth')),
    allowedResponseHeaders: filled(service.texts('headersToBackend')),
  })
  return compact({
    backendRef: ref === undefined ? undefined : backends.reference(ref),
    ...(auth.has('grpc') ? { grpc: {} } : { http }),
    forwardBody: maxSize === undefined ? undefined : { maxSize },
  })
}

function addAuthorization(
  auth: SourceField,
  name: string,
  refs: readonly Fields[],
  result: Conversion,
): void {
  if (!auth.isSet) return
  const matchExpressions = [orderedRules(auth, conditionOf)]
  const authorization = { action: 'Require', policy: { matchExpressions } }
  result.policy(`${name}-rules`, refs, { traffic: { authorization } }, auth)
}

/**
 * One expression for rules that apply in their order: what the first matching rule says, or else the default.
 * A rule without a condition cannot be expressed, so it refuses all requests that reach it.
 */
export function orderedRules(
  auth: SourceField,
  conditionOf: (rule: SourceField) => string | undefined,
  actionByDefault: 'Allow' | 'Deny' = 'Deny',
): string {
  const decision = (action: string | undefined) => (action === 'Allow' ? 'true' : 'false')
  const byDefault = decision(auth.text('defaultAction'))
  return auth.items('rules').reduceRight((otherwise, rule) => {
    rule.ignore('name')
    const action = decision(rule.text('action') ?? actionByDefault)
    const condition = conditionOf(rule)
    return condition === undefined ? 'false' : `(${condition}) ? ${action} : (${otherwise})`
  }, byDefault)
}

function conditionOf(rule: SourceField): string | undefined {
  const principal = rule.get('principal')
  const parts: (string | undefined)[] = []
  const cel = rule.get('cel')
  if (cel.isSet) parts.push(undefined)
  const ranges = principal.get('clientCIDRs')
  if (ranges.isSet) parts.push(sourceIn(ranges.texts()))
  for (const header of principal.items('headers')) {
    const headerName = (header.text('name') ?? '').toLowerCase()
    const list = quoteAll(header.texts('values'))
    parts.push(
      `default(request.headers.raw()[${quote(headerName)}], []).exists(value, value in ${list})`,
    )
  }
  const jwt = principal.get('jwt')
  if (jwt.isSet) parts.push(...claimConditions(jwt))
  if (principal.has('clientIPGeoLocations')) parts.push(undefined)
  const methods = rule.at('operation', 'methods').texts()
  if (methods.length > 0) parts.push(`request.method in ${quoteAll(methods)}`)
  if (rule.at('operation', 'path').isSet) parts.push(undefined)
  if (parts.includes(undefined)) {
    return rule.refuse(
      'changed',
      'the rule cannot be expressed; requests that reach it are refused',
    )
  }
  return parts.length === 0 ? 'true' : parts.map((part) => `(${part})`).join(' && ')
}

export function claimConditions(jwt: SourceField): string[] {
  jwt.ignore('provider')
  const claims = jwt.items('claims').map((claim) => {
    const path = (claim.text('name') ?? '').split('.').map((step) => `[${quote(step)}]`)
    const list = quoteAll(claim.texts('values'))
    const value = `jwt${path.join('')}`
    return claim.text('valueType') === 'StringArray'
      ? `default(${value}, []).exists(item, item in ${list})`
      : `default(${value}, "") in ${list}`
  })
  const scopes = jwt
    .texts('scopes')
    .map((scope) => `${quote(scope)} in default(jwt["scope"], "").split(" ")`)
  return [...claims, ...scopes]
}

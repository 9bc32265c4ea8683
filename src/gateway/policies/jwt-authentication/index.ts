import { parseKeySet } from '../../../engines/auth/jwt/key-set.ts'
import { parseDurationMs } from '../../../ground/base/duration.ts'
import { sessionKeyRef } from '../../../ground/model/mcp-targets.ts'
import { calledBackend, type References } from '../../../ground/model/references.ts'
import type { SecretRef } from '../../../ground/model/resources.ts'
import type { McpSignInConfig } from '../../backends/mcp/auth/config.ts'
import { tokenRules } from '../../backends/mcp/auth/providers.ts'
import { compileSignIn } from '../../backends/mcp/auth/schema.ts'
import { compileLocation } from '../../tokens/compile-location.ts'
import type { IntrospectionConfig } from '../../tokens/introspection.ts'
import type { TokenIssuer } from '../../tokens/token-issuer.ts'
import { clientSecretOf } from '../client-secret.ts'
import { type Compiled, definePolicy, type PolicyProblem } from '../define.ts'
import type { JwtConfig } from './config.ts'
import { type FoundKeys, fetchedKeys, usable } from './keys.ts'
import {
  type IntrospectionSpec,
  type JwtAuthenticationSpec,
  jwtAuthenticationSchema,
  type ProviderSpec,
} from './schema.ts'

/** Default of `introspection.cacheDuration` in milliseconds. */
const defaultCacheMs = 60_000

interface Found {
  readonly problems: PolicyProblem[]
  readonly notes: string[]
  readonly secrets: SecretRef[]
  /** Whether there are several providers, so that one without keys is only a part of the policy. */
  readonly isOneOfMany: boolean
}

/**
 * If a provider has no usable keys, its tokens are rejected; other providers are not affected. The policy
 * always applies: if no provider has keys, Strict rejects all requests, and the status says why.
 */
function compile(spec: JwtAuthenticationSpec, references: References): Compiled<JwtConfig> {
  const { mode = 'Strict', providers, location, dpop } = spec
  const isOneOfMany = providers.length > 1
  const found: Found = { problems: [], notes: [], secrets: [], isOneOfMany }
  const compiled = providers.flatMap((provider, index) => {
    const issuer = compileProvider(provider, `providers[${index}]`, references, found)
    if (issuer.introspection !== undefined) return [issuer]
    const rules = tokenRules(provider.issuer, spec.mcp?.provider)
    return rules.map((more) => ({ ...issuer, ...more }))
  })
  const mcp = compileMcp(spec, references, found)
  const { problems, notes, secrets } = found
  const isUsable =
    notes.length > 0 || compiled.some(({ keys, introspection }) => introspection || keys.length > 0)
  if (!isUsable && isOneOfMany) {
    problems.push({ path: 'providers', message: 'none has a key; no token is accepted' })
  }
  problems.push(...introspectionProblems(providers))
  if (dpop?.nonces === true || mcp !== undefined) secrets.push(sessionKeyRef)
  const config = {
    mode,
    providers: compiled,
    ...(location && { location: compileLocation(location) }),
    ...(mcp && { mcp }),
    ...(dpop && { dpop: { required: dpop.required ?? false, nonces: dpop.nonces ?? false } }),
  }
  return { config, problems, notes, secrets, protects: true }
}

/** Only one provider is possible, because the metadata names one authorization server. */
function compileMcp(
  { mode = 'Strict', providers, mcp }: JwtAuthenticationSpec,
  references: References,
  found: Found,
): McpSignInConfig | undefined {
  const [provider] = providers
  if (mcp === undefined || provider === undefined) return undefined
  if (providers.length > 1 || mode !== 'Strict') {
    const message =
      'needs exactly one provider and mode Strict. Without them, it is ignored: clients cannot find out where to get tokens'
    found.problems.push({ path: 'mcp', message, partial: true })
    return undefined
  }
  const { issuer, audiences, jwks } = provider
  const target = jwks?.remote && references.backend(jwks.remote.backendRef)
  const isTarget = typeof target === 'object' && target.type !== 'invalid'
  return compileSignIn(
    mcp,
    { issuer, ...(audiences && { audiences }), ...(isTarget && { target }) },
    references,
    { ...found, path: 'mcp' },
  )
}

function compileProvider(
  spec: ProviderSpec,
  path: string,
  references: References,
  found: Found,
): TokenIssuer {
  const { issuer, audiences, requiredClaims } = spec
  const common = { issuer, audiences, requiredClaims }
  if (spec.introspection !== undefined) {
    const asked = `${path}.introspection`
    const introspection = compileIntrospection(spec.introspection, asked, references, found)
    return { ...common, keys: [], ...(introspection && { introspection }) }
  }
  const { jwks = {} } = spec
  const source = `${path}.jwks.${jwks.remote === undefined ? 'inline' : 'remote'}`
  const { keys, failure, pending, skipped = [] } = findKeys(jwks, references)
  if (failure !== undefined) refuseTokens(found, source, failure, issuer)
  if (pending !== undefined) found.notes.push(`${source}: ${pending}`)
  for (const message of skipped) found.problems.push({ path: source, message, partial: true })
  return { ...common, keys }
}

function refuseTokens(
  { problems, isOneOfMany }: Found,
  path: string,
  why: string,
  issuer: string,
): void {
  const message = `${why}; no token of ${issuer} is accepted`
  problems.push({ path, message, ...(isOneOfMany && { partial: true }) })
}

function findKeys(
  { inline, remote }: NonNullable<ProviderSpec['jwks']>,
  references: References,
): FoundKeys {
  if (remote !== undefined) return fetchedKeys(remote, references)
  return usable(parseKeySet(inline ?? ''), 'the key set')
}

/** Returns undefined, and reports it, if the endpoint cannot be asked. */
function compileIntrospection(
  { backendRef, path, clientAuth, cacheDuration }: IntrospectionSpec,
  place: string,
  references: References,
  found: Found,
): IntrospectionConfig | undefined {
  const target = calledBackend(references, backendRef)
  const secret = clientSecretOf(clientAuth.secretRef, references)
  if (typeof target === 'string') refuseTokens(found, `${place}.backendRef`, target, path)
  if (typeof secret === 'string') refuseTokens(found, `${place}.clientAuth.secretRef`, secret, path)
  if (typeof target === 'string' || typeof secret === 'string') return undefined
  found.secrets.push(secret)
  return {
    target,
    path: path.startsWith('/') ? path : `/${path}`,
    clientId: clientAuth.clientId,
    clientSecret: secret.digest,
    method: clientAuth.method ?? 'ClientSecretBasic',
    cacheMs: parseDurationMs(cacheDuration) ?? defaultCacheMs,
  }
}

/** An opaque token does not name its issuer, and must not be sent to several. */
function introspectionProblems(providers: readonly ProviderSpec[]): PolicyProblem[] {
  const asking = providers.flatMap(({ introspection }, index) => (introspection ? [index] : []))
  return asking.slice(1).map((index) => ({
    path: `providers[${index}].introspection`,
    message: `providers[${asking[0]}] already has introspection, and an opaque token does not say which one to ask`,
  }))
}

/** Requires requests to carry a valid token. */
export const jwtAuthentication = definePolicy({
  section: 'traffic',
  field: 'jwtAuthentication',
  schema: jwtAuthenticationSchema,
  doc: 'Validates tokens of clients: JSON Web Tokens (RFC 7519), or tokens that their issuer is asked about.',
  security: true,
  preRouting: true,
  expressions: [{ path: 'location.expression', point: 'credentials' }],
  compile,
  apply: () => import('./apply.ts'),
})

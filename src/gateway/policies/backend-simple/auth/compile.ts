/** Turns what users write about credentials for backends into the form that proxies receive. */
import { parseDurationMs } from '../../../../ground/base/duration.ts'
import { sessionKeyRef } from '../../../../ground/model/mcp-targets.ts'
import {
  calledBackend,
  missingEntry,
  type References,
} from '../../../../ground/model/references.ts'
import type { SecretRef } from '../../../../ground/model/resources.ts'
import type { CredentialPlacement } from '../../../../ground/schema/shapes/authentication.ts'
import type {
  CacheConfig,
  ClientAuthConfig,
  EndpointConfig,
  GrantConfig,
  JwtSignConfig,
  PlacementConfig,
  SentTokenConfig,
  SigningKeyConfig,
  UserConsentConfig,
} from '../../../credentials/config.ts'
import { compileLocation } from '../../../tokens/compile-location.ts'
import { clientSecretOf, sealingKeysOf } from '../../client-secret.ts'
import type { PolicyProblem } from '../../define.ts'
import type {
  BackendAuthSpec,
  ClientAuthSpec,
  CommonSpec,
  EndpointSpec,
  SentTokenSpec,
  SigningSpec,
} from './schema.ts'

/** Headers that the engine sets itself, or that concern one connection. */
const unusableHeaders: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'expect',
  'host',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

const namesOfTypes: Readonly<Record<string, string>> = {
  AccessToken: 'access_token',
  Jwt: 'jwt',
  IdToken: 'id_token',
  IdJag: 'id-jag',
}

const typeOf = (name: string): string => {
  const own = namesOfTypes[name]
  return own === undefined ? name : `urn:ietf:params:oauth:token-type:${own}`
}

/** Claims that the gateway sets itself. */
const ownClaims = ['iat', 'exp', 'nbf']
/** Parameters that the grants set themselves. */
const ownParameters: ReadonlySet<string> = new Set([
  'grant_type',
  'client_id',
  'client_secret',
  'client_assertion',
  'client_assertion_type',
  'assertion',
  'subject_token',
  'subject_token_type',
  'actor_token',
  'actor_token_type',
  'audience',
  'requested_token_type',
  'resource',
  'scope',
])

/** Parameters of authorization requests that the gateway sets itself. */
const authorizationParameters: ReadonlySet<string> = new Set([
  'response_type',
  'response_mode',
  'client_id',
  'redirect_uri',
  'state',
  'code_challenge',
  'code_challenge_method',
  'scope',
  'resource',
  'request',
  'request_uri',
])

/** Reads one policy, and collects its problems and secrets. */
export class AuthCompiler {
  readonly problems: PolicyProblem[] = []
  readonly notes: string[] = []
  readonly secrets: SecretRef[] = []
  readonly #references: References

  constructor(references: References) {
    this.#references = references
  }

  grant(spec: BackendAuthSpec): GrantConfig | undefined {
    if (spec.oauthClientCredentials !== undefined) {
      return this.#clientCredentials(spec.oauthClientCredentials)
    }
    if (spec.oauthTokenExchange !== undefined) return this.#tokenExchange(spec.oauthTokenExchange)
    return spec.crossAppAccess && this.#crossAppAccess(spec.crossAppAccess)
  }

  #clientCredentials(
    spec: NonNullable<BackendAuthSpec['oauthClientCredentials']>,
  ): GrantConfig | undefined {
    const path = 'oauthClientCredentials'
    const { additionalParams = {} } = spec
    const endpoint = this.#endpoint(spec, path)
    this.#refuseParameters(additionalParams, path)
    return (
      endpoint && {
        type: 'clientCredentials',
        endpoint,
        ...targetOf(spec),
        parameters: additionalParams,
        ...this.#common(spec, path),
      }
    )
  }

  userConsent(
    spec: NonNullable<BackendAuthSpec['oauthUserConsent']>,
  ): UserConsentConfig | undefined {
    const path = 'oauthUserConsent'
    const { additionalParams = {}, sealingKeysRef, authorizationEndpoint, redirectURI } = spec
    const endpoint = this.#endpoint(spec, path)
    for (const name of Object.keys(additionalParams)) {
      if (!authorizationParameters.has(name)) continue
      const message = 'the gateway sets this parameter itself'
      this.#refuse(`${path}.additionalParams.${name}`, message)
    }
    if (authorizationEndpoint !== undefined && URL.parse(authorizationEndpoint) === null) {
      this.#refuse(`${path}.authorizationEndpoint`, 'is not a URL')
    }
    const keys = sealingKeysRef && sealingKeysOf(sealingKeysRef.name, this.#references)
    if (typeof keys === 'string') return this.#refuse(`${path}.sealingKeysRef`, keys)
    this.secrets.push(...(keys ?? [sessionKeyRef]))
    const named = spec.issuer ?? authorizationEndpoint ?? ''
    return (
      endpoint && {
        type: 'userConsent',
        endpoint,
        authorizationEndpoint,
        redirectURI,
        label: spec.displayName ?? URL.parse(named)?.host ?? named,
        scopes: spec.scopes ?? [],
        resources: spec.resources ?? [],
        parameters: additionalParams,
        keys: keys?.map(({ digest }) => digest) ?? [],
        defaultMs: parseDurationMs(spec.defaultTtl ?? '1h') ?? 0,
        ...this.#placedToken(spec, path),
      }
    )
  }

  #tokenExchange(
    spec: NonNullable<BackendAuthSpec['oauthTokenExchange']>,
  ): GrantConfig | undefined {
    const path = 'oauthTokenExchange'
    const { actorToken, requestedTokenType, additionalParams = {} } = spec
    const endpoint = this.#endpoint(spec, path)
    this.#refuseParameters(additionalParams, path)
    return (
      endpoint && {
        type: 'tokenExchange',
        grantType: spec.grantType ?? 'TokenExchange',
        endpoint,
        subject: sentToken(spec.subjectToken, 'AccessToken'),
        ...(actorToken && { actor: sentToken(actorToken, 'AccessToken') }),
        ...(actorToken?.mayAct && { mayAct: true as const }),
        ...targetOf(spec),
        ...(requestedTokenType && { requestedType: typeOf(requestedTokenType) }),
        parameters: additionalParams,
        ...this.#common(spec, path),
      }
    )
  }

  #crossAppAccess(spec: NonNullable<BackendAuthSpec['crossAppAccess']>): GrantConfig | undefined {
    const path = 'crossAppAccess'
    const identityProvider = this.#endpoint(spec.identityProvider, `${path}.identityProvider`)
    const server = `${path}.resourceAuthorizationServer`
    const resourceServer = this.#endpoint(spec.resourceAuthorizationServer, server)
    if (identityProvider === undefined || resourceServer === undefined) return undefined
    const { audience, resources = [], scopes = [], accessTokenScopes = scopes } = spec
    return {
      type: 'crossAppAccess',
      identityProvider,
      resourceServer,
      subject: sentToken(spec.subjectToken, 'IdToken'),
      audience,
      resources,
      scopes,
      accessTokenScopes,
      ...this.#common(spec, path),
    }
  }

  jwtSign(spec: NonNullable<BackendAuthSpec['jwtSign']>): JwtSignConfig | undefined {
    const path = 'jwtSign'
    const { claims = {}, ttl, location } = spec
    for (const name of ownClaims) {
      if (claims[name] === undefined) continue
      this.#refuse(`${path}.claims.${name}`, 'the gateway sets this claim itself; ttl decides exp')
    }
    const signing = this.#signing(spec, path)
    return (
      signing && {
        type: 'jwtSign',
        signing,
        claims,
        ttlMs: parseDurationMs(ttl ?? '300s') ?? 0,
        ...this.placed(location, path),
      }
    )
  }

  /** The further values that requests carry. */
  credentials({ credentials = [] }: BackendAuthSpec) {
    return credentials.flatMap(({ location, secretRef }, at) => {
      const path = `credentials[${at}]`
      const value = this.entry(
        secretRef.name,
        secretRef.key ?? 'Authorization',
        `${path}.secretRef`,
      )
      const placed = this.placed(location, path)
      return value === undefined ? [] : [{ value, ...placed }]
    })
  }

  /** Returns the digest of a non-empty entry of a Secret. If there is none, notes the problem. */
  entry(name: string, key: string, path: string): string | undefined {
    const secret = this.#references.secret(name)
    if (secret === undefined) return this.#refuse(path, `Secret ${name} does not exist`)
    const ref = secret.ref(key)
    if (ref === undefined) return this.#refuse(path, missingEntry(secret, key))
    if (secret.entries[key]?.isEmpty === true) {
      return this.#refuse(path, `Secret ${secret.label}: ${key} is empty`)
    }
    this.secrets.push(ref)
    return ref.digest
  }

  /** Returns the digest of an entry of a Secret; undefined if there is none. */
  optionalEntry(name: string, key: string): string | undefined {
    const ref = this.#references.secret(name)?.ref(key)
    if (ref !== undefined) this.secrets.push(ref)
    return ref?.digest
  }

  placed(
    location: CredentialPlacement | undefined,
    path: string,
  ): { readonly location?: PlacementConfig } {
    if (location === undefined) return {}
    const compiled = compileLocation(location)
    const name = compiled.header?.name
    if (name !== undefined && unusableHeaders.has(name)) {
      const field = `${path === '' ? '' : `${path}.`}location.header.name`
      this.#refuse(field, `header ${name} cannot carry a credential`)
    }
    return { location: compiled }
  }

  #common(
    spec: CommonSpec,
    path: string,
  ): { location?: PlacementConfig; dpop?: true; cache: CacheConfig } {
    const { maxEntries = 8_192, defaultTtl = '300s' } = spec.cache?.inMemory ?? {}
    const cache = { maxEntries, defaultMs: parseDurationMs(defaultTtl) ?? 0 }
    return { ...this.#placedToken(spec, path), cache }
  }

  #placedToken(
    { dpop, location }: Pick<CommonSpec, 'dpop' | 'location'>,
    path: string,
  ): { location?: PlacementConfig; dpop?: true } {
    if (dpop !== true) return this.placed(location, path)
    // RFC 9449 section 7.1: in Authorization, with the scheme DPoP.
    if (location !== undefined) this.#refuse(`${path}.dpop`, 'location cannot be set with dpop')
    return { dpop }
  }

  #endpoint(spec: EndpointSpec, path: string): EndpointConfig | undefined {
    const { url, issuer, backendRef } = spec
    const target = backendRef && calledBackend(this.#references, backendRef)
    if (typeof target === 'string') return this.#refuse(`${path}.backendRef`, target)
    const address = url ?? issuer
    if (address !== undefined && URL.parse(address) === null) {
      return this.#refuse(`${path}.${url === undefined ? 'issuer' : 'url'}`, 'is not a URL')
    }
    if (address?.startsWith('http:')) {
      const field = url === undefined ? 'issuer' : 'url'
      this.notes.push(
        `${path}.${field}: reached without TLS, so that others on the network can read tokens and secrets`,
      )
    }
    const clientAuth = spec.clientAuth && this.#clientAuth(spec.clientAuth, `${path}.clientAuth`)
    if (spec.clientAuth !== undefined && clientAuth === undefined) return undefined
    return {
      url,
      issuer,
      ...(target && { target, path: spec.path ?? '/' }),
      ...(clientAuth && { clientAuth }),
    }
  }

  #clientAuth(spec: ClientAuthSpec, path: string): ClientAuthConfig | undefined {
    const { clientId, method = 'ClientSecretBasic', secretRef, privateKeyJwt } = spec
    if (secretRef !== undefined) {
      const found = clientSecretOf(secretRef, this.#references)
      if (typeof found === 'string') return this.#refuse(`${path}.secretRef`, found)
      this.secrets.push(found)
      return { clientId, method, secret: found.digest }
    }
    if (privateKeyJwt === undefined) return undefined
    const place = `${path}.privateKeyJwt`
    const signing = this.#signing(privateKeyJwt, place)
    const { certificateRef, certificateHeader = 'x5c', assertionAudience } = privateKeyJwt
    const certificate =
      certificateRef &&
      this.entry(certificateRef.name, certificateRef.key ?? 'tls.crt', `${place}.certificateRef`)
    if (signing === undefined || (certificateRef && certificate === undefined)) return undefined
    return {
      clientId,
      method,
      assertion: {
        signing,
        audience: assertionAudience,
        ...(certificate && { certificate }),
        certificateHeader,
      },
    }
  }

  #signing({ signingKeyRef, alg, kid }: SigningSpec, path: string): SigningKeyConfig | undefined {
    const key = this.entry(
      signingKeyRef.name,
      signingKeyRef.key ?? 'signingKey',
      `${path}.signingKeyRef`,
    )
    return key === undefined ? undefined : { key, alg: alg ?? 'RS256', kid }
  }

  #refuseParameters(parameters: Readonly<Record<string, string>>, path: string): void {
    for (const name of Object.keys(parameters)) {
      if (!ownParameters.has(name)) continue
      const message = 'the gateway sets this parameter itself'
      this.#refuse(`${path}.additionalParams.${name}`, message)
    }
  }

  #refuse(path: string, message: string): undefined {
    this.problems.push({ path, message })
  }
}

const targetOf = ({
  audiences = [],
  resources = [],
  scopes = [],
}: {
  readonly audiences?: readonly string[]
  readonly resources?: readonly string[]
  readonly scopes?: readonly string[]
}) => ({ audiences, resources, scopes })

function sentToken(spec: SentTokenSpec | undefined, byDefault: string): SentTokenConfig {
  const { source, tokenType = byDefault } = spec ?? {}
  return { ...(source && { source: compileLocation(source) }), type: typeOf(tokenType) }
}

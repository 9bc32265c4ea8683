/** The OpenID provider: its metadata, the code and refresh grants, and its keys. Nothing here runs on the hot path. */
import { hash } from 'node:crypto'
import type * as Oauth from 'oauth4webapi'
import { readKeySet, type VerificationKey } from '../../engines/auth/jwt/key-set.ts'
import { GatewayError } from '../../ground/errors/index.ts'
import type { HttpCallout } from '../../ground/exchange/exchange.ts'
import { KeptMetadata } from '../tokens/kept-metadata.ts'
import type { OauthRequest } from '../tokens/oauth-transport.ts'
import type { OidcConfig } from './config.ts'

// Loaded only where a policy signs users in, so that other workers start without it.
const oauth = await import('oauth4webapi')

/** What a sign-in must remember until the provider redirects back. */
export interface ExpectedAnswer {
  readonly state: string
  readonly nonce: string
  readonly verifier: string
  readonly redirectURI: string
}

/** The tokens of a grant. Times are in seconds. */
export interface Tokens {
  readonly claims: Oauth.IDToken | undefined
  readonly idToken: string | undefined
  readonly accessToken: string
  readonly refreshToken: string | undefined
  readonly expiresIn: number | undefined
}

/** Why the provider gave no tokens. `message` contains no token and no secret. */
export class ProviderError extends Error {
  readonly kind: 'unavailable' | 'refused' | 'invalid'

  /** `refused`: the provider says no; `invalid`: its answer is not acceptable; `unavailable`: it may work later. */
  constructor(kind: ProviderError['kind'], message: string, cause?: unknown) {
    super(message, { cause })
    this.kind = kind
  }
}

/** What a provider is, and what is asked of it. */
export type ProviderConfig = Omit<
  OidcConfig,
  | 'clientSecret'
  | 'redirectURI'
  | 'logoutPath'
  | 'postLogoutRedirectURI'
  | 'backChannelLogoutPath'
  | 'frontChannelLogoutPath'
  | 'signInMs'
  | 'sessionMs'
  | 'defaultTokenMs'
  | 'refreshToken'
  | 'keys'
  | 'passThroughAuthHeader'
  | 'forwardAccessToken'
  | 'forwardIDToken'
>

/**
 * Sends a request to a URL, or to its path at a target. Does not follow redirects. Rejects with a GatewayError or a
 * ProviderError.
 */
export type SendRequest = (
  url: URL,
  request: OauthRequest,
  target?: HttpCallout['target'],
) => Promise<Response>

/** Maximum accepted clock difference to the provider, in seconds. */
const leewaySeconds = 60

interface CallOptions {
  [oauth.customFetch]: (url: string, init: OauthRequest) => Promise<Response>
  [oauth.allowInsecureRequests]?: boolean
}

export class Provider {
  readonly #config: ProviderConfig
  readonly #send: SendRequest
  readonly #issuer: URL
  readonly #client: Oauth.Client
  readonly #authentication: Oauth.ClientAuth
  readonly #options: CallOptions
  readonly #metadata = new KeptMetadata(() => this.#discover())

  /** Throws if the issuer is no URL. */
  constructor(config: ProviderConfig, send: SendRequest, secret: string | undefined) {
    this.#config = config
    this.#send = send
    this.#issuer = new URL(config.issuer)
    this.#client = { client_id: config.clientId, [oauth.clockTolerance]: leewaySeconds }
    const inBody = config.tokenEndpointAuth === 'ClientSecretPost'
    this.#authentication =
      secret === undefined
        ? oauth.None()
        : (inBody ? oauth.ClientSecretPost : oauth.ClientSecretBasic)(secret)
    this.#options = {
      [oauth.customFetch]: (url, options) => this.#fetch(url, options),
      // Only a provider whose issuer is not protected by TLS may have endpoints that are not.
      ...(this.#issuer.protocol === 'http:' && { [oauth.allowInsecureRequests]: true }),
    }
  }

  /** Resolves to the metadata. Rejects with a ProviderError. */
  metadata(): Promise<Oauth.AuthorizationServer> {
    return this.#metadata.get()
  }

  async #discover(): Promise<Oauth.AuthorizationServer> {
    try {
      return await this.#run(() => this.#readMetadata())
    } catch (thrown) {
      throw new ProviderError('unavailable', (thrown as Error).message, thrown)
    }
  }

  async #readMetadata(): Promise<Oauth.AuthorizationServer> {
    const { authorizationEndpoint, tokenEndpoint, jwksURI, endSessionEndpoint } = this.#config
    const own = {
      ...(authorizationEndpoint && { authorization_endpoint: authorizationEndpoint }),
      ...(tokenEndpoint && { token_endpoint: tokenEndpoint }),
      ...(jwksURI && { jwks_uri: jwksURI }),
      ...(endSessionEndpoint && { end_session_endpoint: endSessionEndpoint }),
    }
    if (authorizationEndpoint && tokenEndpoint && jwksURI) {
      return { issuer: this.#config.issuer, ...own }
    }
    const response = await oauth.discoveryRequest(this.#issuer, this.#options)
    const found = { ...(await oauth.processDiscoveryResponse(this.#issuer, response)), ...own }
    for (const name of ['authorization_endpoint', 'token_endpoint', 'jwks_uri'] as const) {
      this.#requireURL(found[name], name)
    }
    return found
  }

  /** Metadata that is not usable is not kept. */
  #requireURL(text: string | undefined, name: string): void {
    const url = URL.parse(text ?? '')
    const isSafe = url?.protocol === 'https:' || this.#issuer.protocol === 'http:'
    if (url !== null && isSafe) return
    throw new ProviderError('unavailable', `the metadata of the provider has no usable ${name}`)
  }

  /** Returns the URL at which the user signs in. */
  async authorizationURL({ state, nonce, verifier, redirectURI }: ExpectedAnswer): Promise<string> {
    const { clientId, scopes, resources, acrValues, maxAgeMs, authorizationParameters } =
      this.#config
    const { authorization_endpoint: endpoint = '' } = await this.metadata()
    const url = new URL(endpoint)
    const { searchParams } = url
    for (const [name, value] of Object.entries(authorizationParameters))
      searchParams.set(name, value)
    const own = {
      response_type: 'code',
      client_id: clientId,
      redirect_uri: redirectURI,
      scope: scopes.join(' '),
      state,
      nonce,
      code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
      ...(acrValues.length > 0 && { acr_values: acrValues.join(' ') }),
      ...(maxAgeMs !== undefined && { max_age: String(Math.floor(maxAgeMs / 1_000)) }),
    }
    for (const [name, value] of Object.entries(own)) searchParams.set(name, value)
    for (const resource of resources) searchParams.append('resource', resource)
    return url.href
  }

  /** Checks the answer of the provider, and exchanges its code for tokens. Rejects with a ProviderError. */
  redeem(answer: URLSearchParams, expected: ExpectedAnswer): Promise<Tokens> {
    return this.#run(async () => {
      const server = await this.metadata()
      const parameters = oauth.validateAuthResponse(server, this.#client, answer, expected.state)
      const response = await oauth.authorizationCodeGrantRequest(
        server,
        this.#client,
        this.#authentication,
        parameters,
        expected.redirectURI,
        expected.verifier,
        this.#grantOptions(),
      )
      const { maxAgeMs } = this.#config
      const result = await oauth.processAuthorizationCodeResponse(server, this.#client, response, {
        expectedNonce: expected.nonce,
        maxAge: maxAgeMs === undefined ? oauth.skipAuthTimeCheck : Math.floor(maxAgeMs / 1_000),
        requireIdToken: true,
      })
      await oauth.validateApplicationLevelSignature(server, response, this.#options)
      return readTokens(result)
    })
  }

  /** Rejects with a ProviderError, which is `refused` if the refresh token is not valid any more. */
  refresh(refreshToken: string, subject: string): Promise<Tokens> {
    return this.#run(async () => {
      const server = await this.metadata()
      const options = this.#grantOptions()
      const response = await oauth.refreshTokenGrantRequest(
        server,
        this.#client,
        this.#authentication,
        refreshToken,
        options,
      )
      const result = await oauth.processRefreshTokenResponse(server, this.#client, response)
      if (result.id_token !== undefined) {
        await oauth.validateApplicationLevelSignature(server, response, this.#options)
      }
      const tokens = readTokens(result)
      if (tokens.claims !== undefined && tokens.claims.sub !== subject) {
        throw new ProviderError('invalid', 'the refreshed ID token is of another user')
      }
      return tokens
    })
  }

  #grantOptions(): Oauth.TokenEndpointRequestOptions {
    const { resources } = this.#config
    const additionalParameters = resources.map((resource) => ['resource', resource])
    return { ...this.#options, ...(resources.length > 0 && { additionalParameters }) }
  }

  /** Resolves to the keys with which the provider signs. Rejects with a ProviderError. */
  keys(): Promise<readonly VerificationKey[]> {
    return this.#run(async () => {
      const { jwks_uri: uri = '' } = await this.metadata()
      const response = await this.#fetch(uri, {
        method: 'GET',
        headers: { accept: 'application/json' },
      })
      const set = response.status === 200 ? readKeySet(await response.json()) : 'cannot be fetched'
      if (typeof set === 'string') {
        throw new ProviderError('unavailable', `the key set of the provider ${set}`)
      }
      return set.keys
    })
  }

  async #fetch(text: string, { method, headers, body }: OauthRequest): Promise<Response> {
    const url = new URL(text)
    const target = url.origin === this.#issuer.origin ? this.#config.target : undefined
    const request = { method, headers: { ...headers, host: url.host }, body }
    const response = await this.#send(url, request, target)
    const { status } = response
    if (status >= 500 || status === 429) {
      throw new ProviderError('unavailable', `the provider responds with ${status}`)
    }
    return response
  }

  /** Turns every failure of a call into a ProviderError. */
  async #run<Result>(call: () => Promise<Result>): Promise<Result> {
    try {
      return await call()
    } catch (error) {
      throw toProviderError(error)
    }
  }
}

function readTokens(result: Oauth.TokenEndpointResponse): Tokens {
  const claims = oauth.getValidatedIdTokenClaims(result)
  if (claims?.at_hash !== undefined && result.id_token !== undefined) {
    requireHash(result.id_token, claims.at_hash, result.access_token)
  }
  return {
    claims,
    idToken: result.id_token,
    accessToken: result.access_token,
    refreshToken: result.refresh_token,
    expiresIn: result.expires_in,
  }
}

/** Checks that the access token belongs to the ID token (OpenID Connect Core 1.0, 3.1.3.8). */
function requireHash(idToken: string, expected: unknown, accessToken: string): void {
  const header = JSON.parse(Buffer.from(idToken.split('.', 1)[0] ?? '', 'base64url').toString())
  const bits = /\d{3}$/.exec(String((header as { alg?: unknown }).alg))?.[0] ?? '512'
  const digest = hash(`sha${bits}`, accessToken, 'buffer')
  const half = digest.subarray(0, digest.length / 2).toString('base64url')
  if (half !== expected) {
    throw new ProviderError('invalid', 'the access token does not belong to the ID token')
  }
}

function toProviderError(error: unknown): ProviderError {
  if (error instanceof ProviderError) return error
  if (error instanceof GatewayError) {
    return new ProviderError(
      'unavailable',
      `the provider cannot be reached: ${error.message}`,
      error,
    )
  }
  if (error instanceof oauth.AuthorizationResponseError) {
    return new ProviderError('refused', `the provider answers ${error.error}`, error)
  }
  if (error instanceof oauth.ResponseBodyError) {
    const isFinal = error.error === 'invalid_grant'
    return new ProviderError(
      isFinal ? 'refused' : 'unavailable',
      `the token endpoint answers ${error.error}`,
      error,
    )
  }
  if (error instanceof oauth.WWWAuthenticateChallengeError) {
    return new ProviderError('unavailable', 'the token endpoint refuses the client', error)
  }
  const why = error instanceof Error ? error.message : String(error)
  return new ProviderError('invalid', `the answer of the provider is not acceptable: ${why}`, error)
}

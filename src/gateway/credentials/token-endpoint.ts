/**
 * Requests tokens from a token endpoint (RFC 6749 section 4.5, RFC 7523, RFC 8693), and revokes them (RFC 7009). Never
 * runs if a token is cached.
 */
import type * as Oauth from 'oauth4webapi'
import { GatewayError } from '../../ground/errors/index.ts'
import type { Callouts, SecretValues } from '../../ground/exchange/exchange.ts'
import { KeptMetadata } from '../tokens/kept-metadata.ts'
import { type OauthRequest, sendOauth } from '../tokens/oauth-transport.ts'
import { type ClientSecrets, clientAuthOf, readClientSecrets } from './client-auth.ts'
import type { EndpointConfig } from './config.ts'
import type { ProofKey } from './dpop.ts'
import type { Issued } from './token-cache.ts'
import { TokenError, unavailable } from './token-error.ts'

/** A token as the endpoint gave it. */
export interface IssuedToken extends Issued<string> {
  readonly issuedType: string | undefined
  readonly refreshToken: string | undefined
}

type TokenType = 'bearer' | 'n_a' | 'dpop'

export type Parameter = [name: string, value: string]

/** Errors that concern the user rather than the gateway (RFC 6749 5.2, RFC 8693 2.2.2, OpenID Connect Core 3.1.2.6). */
const userErrors: ReadonlySet<string> = new Set([
  'access_denied',
  'consent_required',
  'interaction_required',
  'invalid_grant',
  'invalid_request',
  'login_required',
])

/** The host of an endpoint that is reached through a backend, whose own host is used. */
const ofBackend = 'http://backend.invalid'

export class TokenEndpoint {
  readonly #config: EndpointConfig
  readonly #callouts: Callouts
  readonly #secrets: ClientSecrets | undefined
  readonly #server: () => Promise<Oauth.AuthorizationServer>
  #authentication: Oauth.ClientAuth | undefined
  /** Handles of the library by key. They keep the nonces of the server. */
  readonly #handles = new WeakMap<ProofKey, Oauth.DPoPHandle>()

  /** Throws if a secret has not arrived, or cannot be used. */
  constructor(config: EndpointConfig, callouts: Callouts, secrets: SecretValues) {
    const { clientAuth, issuer } = config
    this.#config = config
    this.#callouts = callouts
    this.#secrets = clientAuth && readClientSecrets(clientAuth, secrets)
    if (issuer === undefined) {
      const url = config.url ?? `${ofBackend}${config.path ?? '/'}`
      const server = Promise.resolve({ issuer: new URL(url).origin, token_endpoint: url })
      this.#server = () => server
    } else {
      const metadata = new KeptMetadata(() => this.#discover(new URL(issuer)))
      this.#server = () => metadata.get()
    }
  }

  /** How messages name the endpoint. */
  get #name(): string {
    const { url, issuer, target } = this.#config
    const place = url ?? issuer ?? (target && `${target.namespace}/${target.name}`)
    return `the token endpoint of ${place}`
  }

  /** Resolves to the metadata of the server; without discovery, only its token endpoint. Rejects with a TokenError. */
  async server(): Promise<Oauth.AuthorizationServer> {
    try {
      return await this.#server()
    } catch (error) {
      throw this.#toTokenError(await import('oauth4webapi'), error)
    }
  }

  /**
   * Resolves to a token whose `token_type` is one of `types`. With `key`, the token is bound to the key. Rejects with a
   * TokenError.
   */
  async request(
    grantType: string,
    parameters: readonly Parameter[],
    { types, key }: { types?: readonly TokenType[]; key?: ProofKey | undefined } = {},
  ): Promise<IssuedToken> {
    const oauth = await import('oauth4webapi')
    const tokenTypes = types ?? [key === undefined ? 'bearer' : 'dpop']
    const send = () => this.#request(oauth, grantType, parameters, key)
    try {
      const answered = await send().catch((error: unknown) => {
        // The library has stored the nonce of the response (RFC 9449 section 8). The request is repeated once.
        if (key === undefined || !oauth.isDPoPNonceError(error)) throw error
        return send()
      })
      return this.#read(answered, tokenTypes)
    } catch (error) {
      throw this.#toTokenError(oauth, error)
    }
  }

  async #request(
    oauth: typeof Oauth,
    grantType: string,
    parameters: readonly Parameter[],
    key: ProofKey | undefined,
  ): Promise<Oauth.TokenEndpointResponse> {
    const server = await this.#server()
    const client = this.#client
    const response = await oauth.genericTokenEndpointRequest(
      server,
      client,
      this.#authenticate(oauth),
      grantType,
      new URLSearchParams(parameters.map(([name, value]): [string, string] => [name, value])),
      {
        ...this.#options(oauth, server.token_endpoint),
        ...(key !== undefined && { DPoP: this.#handleOf(oauth, client, key) }),
      },
    )
    return oauth.processGenericTokenEndpointResponse(
      server,
      client,
      await withoutIdToken(response),
      { recognizedTokenTypes: { n_a: () => undefined } },
    )
  }

  #handleOf(oauth: typeof Oauth, client: Oauth.Client, key: ProofKey): Oauth.DPoPHandle {
    const found =
      this.#handles.get(key) ?? oauth.DPoP(client, key.pair as Parameters<typeof oauth.DPoP>[1])
    this.#handles.set(key, found)
    return found
  }

  /**
   * Revokes a token (RFC 7009). Resolves to false if the server has no endpoint for it, or revokes no tokens of this
   * type. Rejects with a TokenError.
   */
  async revoke(token: string, type: 'access_token' | 'refresh_token'): Promise<boolean> {
    const oauth = await import('oauth4webapi')
    try {
      const server = await this.#server()
      if (server.revocation_endpoint === undefined) return false
      // The token must be sent with TLS, unless the issuer itself has none.
      const options = this.#options(oauth, this.#config.issuer)
      const response = await oauth.revocationRequest(
        server,
        this.#client,
        this.#authenticate(oauth),
        token,
        { ...options, additionalParameters: { token_type_hint: type } },
      )
      await oauth.processRevocationResponse(response)
      return true
    } catch (error) {
      const code = error instanceof oauth.ResponseBodyError ? error.error : undefined
      if (code === 'unsupported_token_type') return false
      throw this.#toTokenError(oauth, error)
    }
  }

  /** A client without authentication sends no id, but the library needs one. */
  get #client(): Oauth.Client {
    return { client_id: this.#config.clientAuth?.clientId ?? 'none' }
  }

  #authenticate(oauth: typeof Oauth): Oauth.ClientAuth {
    const { clientAuth } = this.#config
    this.#authentication ??=
      clientAuth === undefined || this.#secrets === undefined
        ? () => undefined
        : clientAuthOf(oauth, clientAuth, this.#secrets)
    return this.#authentication
  }

  #read(answered: Oauth.TokenEndpointResponse, tokenTypes: readonly string[]): IssuedToken {
    const { access_token: token, token_type, expires_in: expiresIn, issued_token_type } = answered
    // A token that is bound to a key would be refused without a proof of it.
    if (!tokenTypes.includes(token_type)) {
      throw unavailable(`${this.#name} answers with a token of type ${nameOf(token_type)}`)
    }
    if (!/^[\x21-\x7e]+$/.test(token)) {
      throw unavailable(`${this.#name} answers with a token that no header can carry`)
    }
    const issuedType = typeof issued_token_type === 'string' ? issued_token_type : undefined
    return { value: token, expiresIn, issuedType, refreshToken: answered.refresh_token }
  }

  async #discover(issuer: URL): Promise<Oauth.AuthorizationServer> {
    const oauth = await import('oauth4webapi')
    let found: Oauth.AuthorizationServer | undefined
    for (const algorithm of ['oidc', 'oauth2'] as const) {
      const options = { algorithm, ...this.#options(oauth, issuer.href) }
      const response = await oauth.discoveryRequest(issuer, options)
      if (response.status === 404 && algorithm === 'oidc') continue
      found = await oauth.processDiscoveryResponse(issuer, response)
      break
    }
    const endpoint = URL.parse(found?.token_endpoint ?? '')
    const isSafe = endpoint?.protocol === 'https:' || issuer.protocol === 'http:'
    if (found !== undefined && endpoint !== null && isSafe) return found
    throw unavailable(`the metadata of ${issuer.href} has no usable token_endpoint`)
  }

  #options(oauth: typeof Oauth, url: string | undefined) {
    return {
      [oauth.customFetch]: (at: string, request: OauthRequest) => this.#send(at, request),
      // Only an endpoint that the user configured without TLS is used without it.
      [oauth.allowInsecureRequests]: url?.startsWith('http:') === true,
    }
  }

  async #send(at: string, request: OauthRequest): Promise<Response> {
    const response = await sendOauth(this.#callouts, new URL(at), request, this.#config.target)
    const { status } = response
    if (status >= 500 || status === 429) throw unavailable(`${this.#name} responds with ${status}`)
    return response
  }

  #toTokenError(oauth: typeof Oauth, error: unknown): TokenError {
    if (error instanceof TokenError) return error
    if (error instanceof GatewayError) {
      return unavailable(`${this.#name} cannot be reached: ${error.message}`, error)
    }
    if (error instanceof oauth.ResponseBodyError) {
      const { claims } = error.cause
      const kind = userErrors.has(error.error) ? 'refused' : 'failed'
      return new TokenError(kind, `${this.#name} answers ${nameOf(error.error)}`, {
        claims: typeof claims === 'string' ? claims : undefined,
      })
    }
    if (error instanceof oauth.WWWAuthenticateChallengeError) {
      return new TokenError(
        'failed',
        `${this.#name} does not accept the credentials of the gateway`,
      )
    }
    // The cause may contain the answer, so it is left out.
    return unavailable(`${this.#name} sends no answer that can be read`)
  }
}

/** Error codes are printable ASCII without quotes (RFC 6749 5.2); anything else could be a text of the server. */
const nameOf = (code: string): string => (/^[a-z_]{1,64}$/.test(code) ? code : 'an unknown code')

/** Removes an ID token from an answer, which nothing uses, and which may be of another issuer than the endpoint's URL. */
async function withoutIdToken(response: Response): Promise<Response> {
  if (response.status !== 200) return response
  const text = await response.text()
  let body = text
  try {
    const { id_token: _, ...fields } = JSON.parse(text) as Record<string, unknown>
    body = JSON.stringify(fields)
  } catch {
    // The library refuses what is no JSON.
  }
  return new Response(body, { status: 200, headers: response.headers })
}

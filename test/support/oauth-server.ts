/**
 * An authorization server as MCP clients meet it, in two kinds that deviate from the standards in
 * their own ways. Each authorization request succeeds, with `iss` in the response, unless it has
 * `prompt=none`, as if no user were signed in; everything else is checked exactly (PKCE with S256, registered
 * clients, their redirect URIs, codes that are valid once).
 *
 *   IdpA   metadata at the well-known path of RFC 8414; a token is for `audience` of the
 *          authorization request; without it, the token has no valid audience
 *   IdpB   OpenID Connect discovery below its realm only; scripts may not register clients (no CORS,
 *          and requests with an Origin are refused); audiences are what the realm is set up with
 */
import { createHash, randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { keySetOf, type SigningKey, sign, signingKey } from './identity-provider.ts'

export interface OAuthServerOptions {
  readonly kind: 'IdpA' | 'IdpB'
  /** The audience of IdpB's tokens. */
  readonly audience?: string
  /** Claims of every token. */
  readonly claims?: Readonly<Record<string, unknown>>
}

export interface OAuthRequest {
  readonly method: string
  /** With the query. */
  readonly url: string
  readonly headers: IncomingMessage['headers']
  readonly body: string
  readonly status: number
}

interface Reply {
  readonly status: number
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

interface Grant {
  readonly client: string
  readonly redirect: string
  readonly challenge: string
  readonly audience: string | undefined
}

export class OAuthServer {
  readonly received: OAuthRequest[] = []
  readonly key: SigningKey
  /** Members of the metadata that are left out or replaced from now on. */
  metadata: Readonly<Record<string, unknown>> = {}
  /** `iss` of authorization responses; none if null, and the own issuer if undefined. */
  responseIssuer: string | null | undefined
  /** Error of authorization responses. */
  refusal: string | undefined
  readonly #options: OAuthServerOptions
  readonly #clients = new Map<string, readonly string[]>()
  readonly #grants = new Map<string, Grant>()
  readonly #server = createServer((request, response) => {
    this.#handle(request, response).catch(() => response.destroy())
  })

  constructor(key: SigningKey, options: OAuthServerOptions) {
    this.key = key
    this.#options = options
  }

  async start(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve))
    return this
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  get origin(): string {
    return `http://127.0.0.1:${this.port}`
  }

  /** The former's name ends in a slash, the latter's names a realm. */
  get issuer(): string {
    return this.#options.kind === 'IdpA' ? `${this.origin}/` : `${this.origin}/realms/mcp`
  }

  get keysPath(): string {
    return this.#options.kind === 'IdpA'
      ? '/.well-known/jwks.json'
      : '/realms/mcp/protocol/openid-connect/certs'
  }

  get #base(): string {
    return this.#options.kind === 'IdpA' ? '' : '/realms/mcp/protocol/openid-connect'
  }

  get #registration(): string {
    return this.#options.kind === 'IdpA'
      ? '/oidc/register'
      : '/realms/mcp/clients-registrations/openid-connect'
  }

  /** Registers a client as an administrator would. Returns its id. */
  register(...redirects: readonly string[]): string {
    const client = randomUUID()
    this.#clients.set(client, redirects)
    return client
  }

  /** A token as the server signs it; claims may say otherwise. */
  token(claims: Readonly<Record<string, unknown>> = {}): Promise<string> {
    const { audience } = this.#options
    const defaults = { iss: this.issuer, sub: 'user', ...(audience && { aud: audience }) }
    return sign(this.key, { ...defaults, ...this.#options.claims, ...claims })
  }

  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.close(() => resolve())
      this.#server.closeAllConnections()
    })
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const { method = '', url = '', headers } = request
    const body = Buffer.concat(chunks).toString()
    const reply = await this.#answer(method, new URL(url, this.origin), headers, body)
    this.received.push({ method, url, headers, body, status: reply.status })
    response.writeHead(reply.status, { 'content-type': 'application/json', ...reply.headers })
    response.end(reply.body === undefined ? '' : JSON.stringify(reply.body))
  }

  async #answer(
    method: string,
    { pathname, searchParams }: URL,
    headers: IncomingMessage['headers'],
    body: string,
  ): Promise<Reply> {
    const isDiscovery =
      this.#options.kind === 'IdpA'
        ? pathname === '/.well-known/oauth-authorization-server'
        : pathname === '/realms/mcp/.well-known/openid-configuration'
    switch (`${method} ${pathname}`) {
      case `GET ${this.keysPath}`:
        return { status: 200, body: keySetOf(this.key) }
      case `GET ${this.#base}/authorize`:
        return this.#authorize(searchParams)
      case `POST ${this.#base}/token`:
        return this.#exchange(new URLSearchParams(body))
      case `POST ${this.#registration}`:
        return this.#register(headers, body)
      default:
        return method === 'GET' && isDiscovery
          ? { status: 200, body: this.#metadata() }
          : { status: 404, body: { error: 'not_found' } }
    }
  }

  #metadata(): unknown {
    return {
      issuer: this.issuer,
      authorization_endpoint: `${this.origin}${this.#base}/authorize`,
      token_endpoint: `${this.origin}${this.#base}/token`,
      registration_endpoint: `${this.origin}${this.#registration}`,
      jwks_uri: `${this.origin}${this.keysPath}`,
      response_types_supported: ['code'],
      grant_types_supported: ['authorization_code'],
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: ['RS256'],
      code_challenge_methods_supported: ['S256'],
      token_endpoint_auth_methods_supported: ['none'],
      authorization_response_iss_parameter_supported: true,
      ...this.metadata,
    }
  }

  #register(headers: IncomingMessage['headers'], body: string): Reply {
    if (this.#options.kind === 'IdpB' && headers.origin !== undefined) {
      return { status: 403, body: { error: 'invalid_request', error_description: 'no scripts' } }
    }
    if (!/^application\/json\b/.test(headers['content-type'] ?? '')) return { status: 415 }
    const asked = JSON.parse(body) as { readonly redirect_uris?: readonly string[] }
    if (!Array.isArray(asked.redirect_uris)) {
      return { status: 400, body: { error: 'invalid_redirect_uri' } }
    }
    const client_id = this.register(...asked.redirect_uris)
    return { status: 201, body: { ...asked, client_id, client_id_issued_at: 1 } }
  }

  #authorize(query: URLSearchParams): Reply {
    const client = query.get('client_id') ?? ''
    const redirect = query.get('redirect_uri') ?? ''
    const challenge = query.get('code_challenge') ?? ''
    const isRight =
      this.#clients.get(client)?.includes(redirect) === true &&
      query.get('response_type') === 'code' &&
      query.get('code_challenge_method') === 'S256' &&
      challenge !== ''
    if (!isRight) return { status: 400, body: { error: 'invalid_request' } }
    const back = new URL(redirect)
    const iss = this.responseIssuer === undefined ? this.issuer : this.responseIssuer
    if (iss !== null) back.searchParams.set('iss', iss)
    const state = query.get('state')
    if (state !== null) back.searchParams.set('state', state)
    const error = query.get('prompt') === 'none' ? 'login_required' : this.refusal
    if (error !== undefined) {
      back.searchParams.set('error', error)
      return { status: 302, headers: { location: back.href } }
    }
    const code = randomUUID()
    const audience =
      this.#options.kind === 'IdpA' ? (query.get('audience') ?? undefined) : this.#options.audience
    this.#grants.set(code, { client, redirect, challenge, audience })
    back.searchParams.set('code', code)
    return { status: 302, headers: { location: back.href } }
  }

  async #exchange(form: URLSearchParams): Promise<Reply> {
    const code = form.get('code') ?? ''
    const grant = this.#grants.get(code)
    this.#grants.delete(code)
    const verifier = createHash('sha256').update(form.get('code_verifier') ?? '')
    const isRight =
      form.get('grant_type') === 'authorization_code' &&
      grant?.client === form.get('client_id') &&
      grant?.redirect === form.get('redirect_uri') &&
      grant?.challenge === verifier.digest('base64url')
    if (!isRight) return { status: 400, body: { error: 'invalid_grant' } }
    const access_token = await this.token({ aud: grant?.audience ?? 'nobody' })
    return { status: 200, body: { access_token, token_type: 'Bearer', expires_in: 300 } }
  }
}

/** Starts one on a free loopback port. */
export async function startOAuthServer(options: OAuthServerOptions): Promise<OAuthServer> {
  return new OAuthServer(await signingKey(options.kind), options).start()
}

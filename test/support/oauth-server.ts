/**
 * An authorization server as MCP clients meet it, in kinds that deviate from the standards in their own ways
 * (`oauth-quirks.ts`). Each authorization request succeeds unless it has `prompt=none`, as if no user were signed in;
 * everything else is checked exactly (PKCE with S256, registered clients, their redirect URIs and secrets, codes that
 * are valid once).
 */
import { createHash, randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { keySetOf, type SigningKey, sign, signingKey } from './identity-provider.ts'
import { type OAuthKind, type Quirks, quirks } from './oauth-quirks.ts'

export interface OAuthServerOptions {
  readonly kind: OAuthKind
  /** The audience of tokens, for kinds that do not take it from requests. */
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
  readonly scopes: readonly string[]
}

/** A client of the server. */
interface Registered {
  readonly redirects: readonly string[]
  /** Required in requests for tokens; undefined for public clients. */
  readonly secret?: string
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
  readonly #quirks: Quirks
  readonly #clients = new Map<string, Registered>()
  readonly #grants = new Map<string, Grant>()
  readonly #server = createServer((request, response) => {
    this.#handle(request, response).catch(() => response.destroy())
  })

  constructor(key: SigningKey, options: OAuthServerOptions) {
    this.key = key
    this.#options = options
    this.#quirks = quirks[options.kind]
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

  get issuer(): string {
    return `${this.origin}${this.#quirks.issuer}`
  }

  get keysPath(): string {
    return this.#quirks.keys
  }

  /** Registers a client as an administrator would. Returns its id. */
  register(...redirects: readonly string[]): string {
    const client = randomUUID()
    this.#clients.set(client, { redirects })
    return client
  }

  /** Registers a client with a secret, as an administrator would. */
  registerAs(client: string, secret: string | undefined, ...redirects: readonly string[]): void {
    this.#clients.set(client, { redirects, ...(secret !== undefined && { secret }) })
  }

  /** A token as the server signs it; claims may say otherwise. */
  token(claims: Readonly<Record<string, unknown>> = {}): Promise<string> {
    const { audience } = this.#options
    const { tokenIssuer: iss = this.issuer } = this.#quirks
    const defaults = { iss, sub: 'user', ...(audience && { aud: audience }) }
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
    const { discovery, base, registration } = this.#quirks
    switch (`${method} ${pathname}`) {
      case `GET ${this.keysPath}`:
        return { status: 200, body: keySetOf(this.key) }
      case `GET ${base}/authorize`:
        return this.#authorize(searchParams)
      case `POST ${base}/token`:
        return this.#exchange(new URLSearchParams(body), headers.authorization)
      case `POST ${registration}`:
        return this.#register(headers, body)
      default:
        return method === 'GET' && pathname === discovery
          ? { status: 200, body: this.#metadata() }
          : { status: 404, body: { error: 'not_found' } }
    }
  }

  #metadata(): unknown {
    const { base, registration, hidesRegistration, hidesPkce, hidesGrants, hasResponseIssuer } =
      this.#quirks
    const isAnnounced = registration !== undefined && !hidesRegistration
    return {
      issuer: this.issuer,
      authorization_endpoint: `${this.origin}${base}/authorize`,
      token_endpoint: `${this.origin}${base}/token`,
      ...(isAnnounced && { registration_endpoint: `${this.origin}${registration}` }),
      jwks_uri: `${this.origin}${this.keysPath}`,
      response_types_supported: ['code'],
      ...(!hidesGrants && { grant_types_supported: ['authorization_code'] }),
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: ['RS256'],
      ...(!hidesPkce && { code_challenge_methods_supported: ['S256'] }),
      token_endpoint_auth_methods_supported: isAnnounced ? ['none'] : ['client_secret_post'],
      ...(hasResponseIssuer && { authorization_response_iss_parameter_supported: true }),
      ...this.metadata,
    }
  }

  #register(headers: IncomingMessage['headers'], body: string): Reply {
    if (this.#quirks.refusesScripts && headers.origin !== undefined) {
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
    const { signInPage, hasResponseIssuer, resourceError, refusedScope, audience } = this.#quirks
    const client = query.get('client_id') ?? ''
    const redirect = query.get('redirect_uri') ?? ''
    const challenge = query.get('code_challenge') ?? ''
    const isRight =
      this.#clients.get(client)?.redirects.includes(redirect) === true &&
      query.get('response_type') === 'code' &&
      query.get('code_challenge_method') === 'S256' &&
      challenge !== ''
    if (!isRight) {
      if (signInPage === undefined) return { status: 400, body: { error: 'invalid_request' } }
      return { status: 302, headers: { location: '/error?error=redirect_mismatch' } }
    }
    if (query.get('prompt') === 'none' && signInPage !== undefined) {
      return { status: 302, headers: { location: `${signInPage}?client_id=${client}` } }
    }
    const back = new URL(redirect)
    const own = hasResponseIssuer ? this.issuer : null
    const iss = this.responseIssuer === undefined ? own : this.responseIssuer
    if (iss !== null) back.searchParams.set('iss', iss)
    const state = query.get('state')
    if (state !== null) back.searchParams.set('state', state)
    const scopes = (query.get('scope') ?? '').split(' ')
    const isRefused = refusedScope !== undefined && scopes.includes(refusedScope)
    const unexpected = query.has('resource') ? resourceError : isRefused && 'invalid_scope'
    const error = query.get('prompt') === 'none' ? 'login_required' : unexpected || this.refusal
    if (error !== undefined) {
      back.searchParams.set('error', error)
      return { status: 302, headers: { location: back.href } }
    }
    const code = randomUUID()
    const asked = audience === 'parameter' ? query.get('audience') : query.get('resource')
    const found = audience === 'fixed' ? this.#options.audience : (asked ?? undefined)
    this.#grants.set(code, { client, redirect, challenge, audience: found, scopes })
    back.searchParams.set('code', code)
    return { status: 302, headers: { location: back.href } }
  }

  async #exchange(form: URLSearchParams, authorization: string | undefined): Promise<Reply> {
    const code = form.get('code') ?? ''
    const grant = this.#grants.get(code)
    this.#grants.delete(code)
    const verifier = createHash('sha256').update(form.get('code_verifier') ?? '')
    const client = form.get('client_id') ?? ''
    const { secret } = this.#clients.get(client) ?? {}
    const sent = form.get('client_secret') ?? undefined
    if (sent !== secret && authorization !== basic(client, secret)) {
      return { status: 401, body: { error: 'invalid_client' } }
    }
    if (form.has('resource') && this.#quirks.resourceError !== undefined) {
      return { status: 400, body: { error: this.#quirks.resourceError } }
    }
    const isRight =
      form.get('grant_type') === 'authorization_code' &&
      grant?.client === client &&
      grant.redirect === form.get('redirect_uri') &&
      grant.challenge === verifier.digest('base64url')
    if (!isRight) return { status: 400, body: { error: 'invalid_grant' } }
    return { status: 200, body: await this.#tokens(grant) }
  }

  async #tokens({ client, audience, scopes }: Grant): Promise<unknown> {
    const common = { token_type: 'Bearer', expires_in: 300 }
    if (this.#quirks.isOpaque) {
      const isOpenId = scopes.includes('openid')
      const id_token = isOpenId ? await this.token({ aud: client }) : undefined
      return { ...common, access_token: randomUUID(), id_token }
    }
    const claims =
      this.#quirks.audience === 'client'
        ? { client_id: client, token_use: 'access' }
        : { aud: audience ?? 'nobody' }
    return { ...common, access_token: await this.token(claims) }
  }
}

function basic(client: string, secret: string | undefined): string | undefined {
  if (secret === undefined) return undefined
  return `Basic ${Buffer.from(`${client}:${secret}`).toString('base64')}`
}

/** Starts one on a free loopback port. */
export async function startOAuthServer(options: OAuthServerOptions): Promise<OAuthServer> {
  return new OAuthServer(await signingKey(options.kind), options).start()
}

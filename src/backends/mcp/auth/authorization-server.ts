/**
 * The authorization server of an issuer as MCP clients see it, with adaptations for identity
 * providers:
 *
 *   IdpA   ignores `resource` (RFC 8707), so `audience` is added to the authorization endpoint
 *   IdpB   does not allow scripts to register clients, so the gateway forwards registrations
 */
import { GatewayError } from '../../../errors/index.ts'
import type { Callouts, Exchange, HttpCalloutAnswer, Verdict } from '../../../exchange/exchange.ts'
import type { PolicyHost, RateBucket } from '../../../exchange/rate-limits.ts'
import type { McpAuthenticationConfig } from '../policy/config.ts'
import { IssuerMetadata, maxAnswerBytes, type ServerMetadata } from './issuer-metadata.ts'
import { publicOrigin, registrationPath, resourceUrl } from './oauth-metadata.ts'
import { corsHeaders, failureAnswer, metadataAnswer } from './own-answers.ts'

/** Maximum size of a registration request. */
const maxRegistrationBytes = 64 * 1024
const timeoutMs = 10_000
/** Rate limit for registrations. All clients share it, because they are not authenticated. */
const registrations = { rate: 60, unit: 'Minutes', burst: 60 } as const

export class AuthorizationServer {
  readonly #config: McpAuthenticationConfig
  readonly #callouts: Callouts
  readonly #issuer: IssuerMetadata | undefined
  readonly #registrations: RateBucket | undefined

  constructor(config: McpAuthenticationConfig, callouts: Callouts, host: PolicyHost) {
    const { issuer, provider } = config
    this.#config = config
    this.#callouts = callouts
    const isWeb = issuer !== undefined && /^https?:\/\//.test(issuer) && URL.canParse(issuer)
    this.#issuer = isWeb ? new IssuerMetadata(issuer, config, callouts) : undefined
    if (isWeb && provider === 'IdpB') {
      this.#registrations = host.bucket('mcp client registration', registrations)
    }
  }

  /** Returns the server metadata for the MCP server at `path`. */
  async metadata(origin: string, path: string): Promise<Verdict> {
    if (this.#issuer === undefined) return noIssuer
    const found = await this.#issuer.find()
    if (typeof found === 'string') return failureAnswer(502, 'server_error', found)
    const adapted = this.#adapt(found.metadata, origin, path)
    return typeof adapted === 'string'
      ? failureAnswer(500, 'server_error', adapted)
      : metadataAnswer(adapted)
  }

  /** Adapts the document to the provider; returns a message if a required member is missing. */
  #adapt(metadata: ServerMetadata, origin: string, path: string): ServerMetadata | string {
    const { provider } = this.#config
    if (provider === undefined) return metadata
    const issuer = resourceUrl(this.#config, origin, path)
    // The issuer is replaced, so members that depend on the original issuer are removed.
    const {
      signed_metadata: _,
      authorization_response_iss_parameter_supported: __,
      ...rest
    } = metadata
    if (provider === 'IdpA') {
      const endpoint = this.#withAudience(rest.authorization_endpoint)
      if (endpoint === undefined) return 'the issuer names no authorization endpoint'
      return { ...rest, issuer, authorization_endpoint: endpoint }
    }
    if (typeof rest.registration_endpoint !== 'string') {
      return 'the issuer names no registration endpoint'
    }
    const base = publicOrigin(this.#config, origin)
    return { ...rest, issuer, registration_endpoint: `${base}${registrationPath(path)}` }
  }

  #withAudience(endpoint: unknown): string | undefined {
    if (typeof endpoint !== 'string' || !URL.canParse(endpoint)) return undefined
    const [audience] = this.#config.audiences ?? []
    if (audience === undefined) return endpoint
    const url = new URL(endpoint)
    url.searchParams.set('audience', audience)
    return url.href
  }

  /** Forwards the registration of a client (RFC 7591). */
  async register(exchange: Exchange): Promise<Verdict> {
    if (this.#issuer === undefined || this.#registrations === undefined) return noIssuer
    if (!this.#registrations.take(1)) {
      const seconds = Math.max(1, Math.ceil(this.#registrations.waitMs / 1000))
      const retryAfter = [['retry-after', `${seconds}`]] as const
      return failureAnswer(429, 'temporarily_unavailable', 'too many registrations', retryAfter)
    }
    const body = await exchange.requestBody.buffer(maxRegistrationBytes)
    if (!body.complete) {
      const text = `the registration has more than ${maxRegistrationBytes} bytes`
      return failureAnswer(413, 'invalid_client_metadata', text)
    }
    const known = await this.#issuer.find()
    if (typeof known === 'string') return failureAnswer(502, 'server_error', known)
    const { pathname } = new URL(this.#config.issuer ?? '')
    try {
      const answer = await this.#callouts.http({
        target: known.target,
        method: 'POST',
        path: `${pathname.replace(/\/$/, '')}/clients-registrations/openid-connect`,
        headers: [['host', this.#issuer.authority], ...forwardedHeaders(exchange)],
        body: body.bytes,
        timeoutMs,
        maxResponseBytes: maxAnswerBytes,
      })
      return forwardedAnswer(answer)
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error
      return failureAnswer(502, 'server_error', 'the issuer cannot be reached')
    }
  }
}

/** Forwarded headers. `authorization` may carry an initial access token (RFC 7591 section 3). */
const registrationHeaders = ['content-type', 'accept', 'authorization']

function forwardedHeaders({ request }: Exchange): (readonly [string, string])[] {
  return registrationHeaders.flatMap((name) => {
    const value = request.headers.get(name)
    return value === undefined ? [] : [[name, value] as const]
  })
}

/** Forwards the response. It contains a client secret, so caches must not store it. */
function forwardedAnswer({ status, headers, body }: HttpCalloutAnswer): Verdict {
  const type = headers.find(([name]) => name.toLowerCase() === 'content-type')?.[1]
  return {
    kind: 'respond',
    status,
    headers: [
      ['content-type', type ?? 'application/json'],
      ['cache-control', 'no-store'],
      ...corsHeaders('POST'),
    ],
    body,
    reason: 'DirectResponse',
  }
}

const noIssuer = failureAnswer(404, 'not_found', 'no authorization server is known')

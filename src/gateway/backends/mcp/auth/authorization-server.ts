/**
 * The authorization server of an issuer as MCP clients see it. If a provider or a client id is set, the gateway
 * takes the place of the issuer, to correct what clients cannot cope with (`providers.ts`).
 *
 * Clients compare `iss` of authorization responses with the issuer of the metadata (RFC 9207). So responses
 * pass through the gateway too (sign-in-relay.ts), and with them requests for tokens, which repeat the
 * redirect URI.
 */
import type { Callouts, Exchange, Verdict } from '../../../../ground/exchange/exchange.ts'
import type { PolicyHost, RateBucket } from '../../../../ground/exchange/rate-limits.ts'
import { adaptMetadata } from './adapted-metadata.ts'
import type { McpSignInConfig } from './config.ts'
import { IssuerMetadata, type KnownIssuer } from './issuer-metadata.ts'
import { type ClientView, GatewayServer, type MetadataPath } from './oauth-metadata.ts'
import { isRelayed } from './providers.ts'
import { acceptedCallbacks } from './redirects.ts'
import { registerClient } from './registration.ts'
import { metadataResponse, oauthError } from './responses.ts'
import { SignInRelay } from './sign-in-relay.ts'
import { requestToken } from './token-relay.ts'

/** Rate limit for registrations. All clients share it, because they are not authenticated. */
const registrations = { rate: 60, unit: 'Minutes', burst: 60 } as const

export class AuthorizationServer {
  readonly #config: McpSignInConfig
  readonly #issuer: IssuerMetadata | undefined
  readonly #registrations: RateBucket | undefined
  readonly #accepted = acceptedCallbacks()
  readonly #relay: SignInRelay
  readonly #secret: string | undefined

  constructor(
    config: McpSignInConfig,
    callouts: Callouts,
    host: PolicyHost,
    secret: string | undefined,
  ) {
    const { issuer } = config
    this.#config = config
    this.#secret = secret
    const isWeb = issuer !== undefined && /^https?:\/\//.test(issuer) && URL.canParse(issuer)
    this.#issuer = isWeb ? new IssuerMetadata(issuer, config, callouts) : undefined
    if (isWeb && isRelayed(config)) {
      this.#registrations = host.bucket('mcp client registration', registrations)
    }
    this.#relay = new SignInRelay(config, this.#accepted)
  }

  /** Serves a request for metadata of the authorization server or to one of its endpoints. */
  async serve(asked: MetadataPath, exchange: Exchange, client: ClientView): Promise<Verdict> {
    const isMetadata = asked.document === 'server'
    const relayed = isRelayed(this.#config)
    if (this.#issuer === undefined || (!isMetadata && !relayed)) {
      return noIssuer
    }
    const limited = asked.document === 'registration' ? this.#takeRegistration() : undefined
    if (limited !== undefined) return limited
    const issuer = await this.#issuer.find()
    if (typeof issuer === 'string') return oauthError(502, 'server_error', issuer)
    if (isMetadata && !relayed) return metadataResponse(issuer.metadata)
    return this.#serveAsIssuer(issuer, asked, exchange, client)
  }

  #serveAsIssuer(
    issuer: KnownIssuer,
    { document, resource, redirectKey = '' }: MetadataPath,
    exchange: Exchange,
    client: ClientView,
  ): Verdict | Promise<Verdict> {
    const server = new GatewayServer(this.#config, client.origin, resource)
    switch (document) {
      case 'registration':
        return registerClient(this.#config, issuer, server, this.#accepted, exchange)
      case 'authorization':
        return this.#relay.authorize(issuer, server, client)
      case 'callback':
        return this.#relay.returnToClient(issuer, server, client, redirectKey)
      case 'token':
        return requestToken(this.#config, issuer, server, exchange, this.#secret)
      default: {
        const adapted = adaptMetadata(issuer.metadata, this.#config, server)
        return typeof adapted === 'string'
          ? oauthError(500, 'server_error', adapted)
          : metadataResponse(adapted)
      }
    }
  }

  #takeRegistration(): Verdict | undefined {
    if (this.#registrations?.take(1) !== false) return undefined
    const seconds = Math.max(1, Math.ceil(this.#registrations.waitMs / 1000))
    const retryAfter = [['retry-after', `${seconds}`]] as const
    return oauthError(429, 'temporarily_unavailable', 'too many registrations', retryAfter)
  }
}

const noIssuer = oauthError(404, 'not_found', 'no authorization server is known')

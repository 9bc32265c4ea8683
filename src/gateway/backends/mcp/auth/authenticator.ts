/**
 * `backend.mcp.authentication`: verifies tokens of MCP clients, and serves the metadata by which
 * clients find the authorization server (MCP authorization, revisions 2025-03-26 to 2025-11-25).
 *
 *   GET  /.well-known/oauth-protected-resource/<path>                          RFC 9728
 *   GET  /.well-known/oauth-authorization-server/<path>                        RFC 8414, from the issuer
 *   POST /.well-known/oauth-authorization-server/<path>/client-registration    RFC 7591, to the issuer
 *   GET  /.well-known/oauth-authorization-server/<path>/client-authorization   RFC 6749, to the issuer
 *   GET  /.well-known/oauth-authorization-server/<path>/client-callback/<key>  to the client
 *   POST /.well-known/oauth-authorization-server/<path>/client-token           RFC 6749, to the issuer
 *   other requests                                                             need a token
 */
import {
  ambiguous,
  credentialsOf,
  errorDescription,
  none,
} from '../../../../engines/auth/authorization-header.ts'
import type { Claims } from '../../../../engines/auth/jwt/token.ts'
import { TokenVerifier } from '../../../../engines/auth/jwt/verifier.ts'
import {
  type Callouts,
  type Exchange,
  next,
  type RespondVerdict,
  type Verdict,
} from '../../../../ground/exchange/exchange.ts'
import type { LearnedRecord } from '../../../../ground/exchange/learned.ts'
import { addNote } from '../../../../ground/exchange/notes.ts'
import type { PolicyHost } from '../../../../ground/exchange/rate-limits.ts'
import { bindingOf, certificateProblem } from '../../../tokens/confirmation.ts'
import { isRevoked, revokedText } from '../../../tokens/refused.ts'
import { AuthorizationServer } from './authorization-server.ts'
import type { McpAuthenticationConfig } from './config.ts'
import {
  type ClientView,
  type MetadataPath,
  publicOrigin,
  readMetadataPath,
  resourceMetadata,
  resourceMetadataPath,
} from './oauth-metadata.ts'
import { jsonResponse, metadataResponse, preflight, wrongMethod } from './responses.ts'

export class McpAuthenticator {
  readonly #config: McpAuthenticationConfig
  readonly #verifier: TokenVerifier
  readonly #server: AuthorizationServer
  /** Parameter of challenges that names the scopes to ask for, with a comma in front. */
  readonly #scope: string

  constructor(config: McpAuthenticationConfig, callouts: Callouts, host: PolicyHost) {
    const { issuer, audiences, keys } = config
    this.#config = config
    this.#verifier = new TokenVerifier([
      { ...(issuer !== undefined && { issuer }), ...(audiences && { audiences }), keys },
    ])
    this.#scope = scopeParameter(config.metadata.scopes_supported)
    this.#server = new AuthorizationServer(config, callouts, host)
  }

  /** Serves requests for metadata. Verifies the tokens of all other requests and removes them. */
  authenticate(exchange: Exchange, client: ClientView): Verdict | Promise<Verdict> {
    const asked = readMetadataPath(client.path)
    return asked === undefined
      ? this.#verify(exchange, client)
      : this.#serveMetadata(asked, exchange, client)
  }

  #serveMetadata(
    asked: MetadataPath,
    exchange: Exchange,
    client: ClientView,
  ): Verdict | Promise<Verdict> {
    const { document, resource } = asked
    const { method } = exchange.request
    const allowed = document === 'registration' || document === 'token' ? 'POST' : 'GET'
    if (method === 'OPTIONS') return preflight(allowed)
    if (method !== allowed && !(method === 'HEAD' && allowed === 'GET')) return wrongMethod(allowed)
    return document === 'resource'
      ? metadataResponse(resourceMetadata(this.#config, client.origin, resource))
      : this.#server.serve(asked, exchange, client)
  }

  #verify(exchange: Exchange, client: ClientView): Verdict {
    const { mode } = this.#config
    const { request, learned } = exchange
    const sent = credentialsOf(request.headers, 'bearer')
    // A policy of the route may already have verified and removed the token.
    const token = sent === none ? (learned.jwtToken ?? none) : sent
    if (token === none) return mode === 'Strict' ? this.#missing(client) : next
    // The token was issued for the gateway, so servers must not see it.
    request.headers.remove('authorization')
    const claims =
      token === ambiguous ? 'the token is invalid or malformed' : this.#claimsOf(token, exchange)
    if (typeof claims === 'string' || token === ambiguous) {
      if (mode !== 'Permissive') return this.#invalid(client, String(claims))
      addNote(exchange, 'backend.mcp', String(claims))
      return next
    }
    learned.jwt = claims as LearnedRecord
    learned.jwtToken = token
    return next
  }

  /** Returns the claims of the token, or why it is refused. */
  #claimsOf(token: string, { learned, peerCertificate }: Exchange): Claims | string {
    const claims = this.#verifier.verify(token, Date.now())
    // The policy of the route that has removed the token has also checked what it is bound to.
    if (typeof claims === 'string') return claims
    if (isRevoked(claims)) return revokedText
    if (token === learned.jwtToken) return claims
    const binding = bindingOf(claims)
    if (binding.proofKey !== undefined) return needsProof
    return certificateProblem(binding, peerCertificate) ?? claims
  }

  #missing(client: ClientView): RespondVerdict {
    const body = { error: 'unauthorized', error_description: 'JWT token required' }
    const challenge = `${this.#challenge(client)}${this.#scope}`
    const headers = [['www-authenticate', challenge]] as const
    return jsonResponse(401, body, 'JwtAuth', headers, 'no bearer token')
  }

  /** Refuses an invalid token (RFC 6750 section 3.1). */
  #invalid(client: ClientView, why: string): RespondVerdict {
    const parameters = `error="invalid_token", ${errorDescription(why)}`
    const challenge = `${this.#challenge(client)}, ${parameters}${this.#scope}`
    const body = { error: 'invalid_token', error_description: why }
    return jsonResponse(401, body, 'JwtAuth', [['www-authenticate', challenge]], why)
  }

  #challenge({ origin, path }: ClientView): string {
    const base = publicOrigin(this.#config, origin)
    const resource = path === '/' ? '' : path
    return `Bearer resource_metadata="${quotable(`${base}${resourceMetadataPath(resource)}`)}"`
  }
}

const needsProof =
  'the token is bound to a key; add traffic.jwtAuthentication to the route, which checks proofs'

/** A scope as RFC 6749 section 3.3 defines it. */
const scopeToken = /^[!#-[\]-~]+$/

function scopeParameter(supported: unknown): string {
  if (!Array.isArray(supported)) return ''
  const scopes = supported.filter((one) => typeof one === 'string' && scopeToken.test(one))
  return scopes.length === 0 ? '' : `, scope="${scopes.join(' ')}"`
}

/** Percent-encodes characters that would end a quoted string or are not allowed in URLs. */
function quotable(url: string): string {
  return url.replace(
    /[^!#-[\]-~]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`,
  )
}

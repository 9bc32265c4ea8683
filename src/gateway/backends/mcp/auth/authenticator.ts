/** `backend.mcp.authentication`: verifies tokens of MCP clients, and serves the metadata of `resource-server.ts`. */
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
  type SecretValues,
  type Verdict,
} from '../../../../ground/exchange/exchange.ts'
import type { LearnedRecord } from '../../../../ground/exchange/learned.ts'
import { addNote } from '../../../../ground/exchange/notes.ts'
import type { PolicyHost } from '../../../../ground/exchange/rate-limits.ts'
import { bindingOf, certificateProblem } from '../../../tokens/confirmation.ts'
import { isRevoked, revokedText } from '../../../tokens/refused.ts'
import type { McpAuthenticationConfig } from './config.ts'
import type { ClientView } from './oauth-metadata.ts'
import { tokenRules } from './providers.ts'
import { ResourceServer } from './resource-server.ts'
import { jsonResponse } from './responses.ts'

export class McpAuthenticator {
  readonly #config: McpAuthenticationConfig
  readonly #verifier: TokenVerifier
  readonly #resource: ResourceServer

  constructor(
    config: McpAuthenticationConfig,
    callouts: Callouts,
    secrets: SecretValues,
    host: PolicyHost,
  ) {
    const { issuer, audiences, keys, provider } = config
    this.#config = config
    this.#verifier = new TokenVerifier(
      tokenRules(issuer, provider).map((rules) => ({
        ...rules,
        ...(audiences && { audiences }),
        keys,
      })),
    )
    this.#resource = new ResourceServer(config, callouts, secrets, host)
  }

  /** Serves requests for metadata. Verifies the tokens of all other requests and removes them. */
  authenticate(exchange: Exchange, client: ClientView): Verdict | Promise<Verdict> {
    return this.#resource.serve(exchange, client) ?? this.#verify(exchange, client)
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
    const challenge = `${this.#challenge(client)}${this.#resource.scope}`
    const headers = [['www-authenticate', challenge]] as const
    return jsonResponse(401, body, 'JwtAuth', headers, 'no bearer token')
  }

  /** Refuses an invalid token (RFC 6750 section 3.1). */
  #invalid(client: ClientView, why: string): RespondVerdict {
    const parameters = `error="invalid_token", ${errorDescription(why)}`
    const challenge = `${this.#challenge(client)}, ${parameters}${this.#resource.scope}`
    const body = { error: 'invalid_token', error_description: why }
    return jsonResponse(401, body, 'JwtAuth', [['www-authenticate', challenge]], why)
  }

  #challenge(client: ClientView): string {
    return `Bearer ${this.#resource.metadataParameter(client)}`
  }
}

const needsProof =
  'the token is bound to a key; add traffic.jwtAuthentication to the route, which checks proofs'

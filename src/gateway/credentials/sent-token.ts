/** A token that came with a request, in exchange for which the gateway gets another one. */
import { none } from '../../engines/auth/authorization-header.ts'
import { readToken } from '../../engines/auth/jwt/token.ts'
import { type Exchange, type RespondVerdict, refuse } from '../../ground/exchange/exchange.ts'
import { type CredentialLocation, locationOf } from '../tokens/location.ts'
import { isRevoked, revokedText } from '../tokens/refused.ts'
import type { SentTokenConfig } from './config.ts'

/** The `reason` of refusals, in the access log and in metrics. */
const reason = 'BackendAuth'

let steps = 0

export class SentToken {
  readonly type: string
  readonly #place: CredentialLocation | undefined
  /** Keeps the token for further attempts, because the first one has removed it from the request. */
  readonly #extension = `credentials.token.${steps++}`

  constructor({ source, type }: SentTokenConfig) {
    this.type = type
    this.#place = source && locationOf(source)
  }

  /** Returns the token and removes it from the request, or refuses a request without one. */
  find(exchange: Exchange): string | RespondVerdict {
    if (this.#place === undefined) return exchange.learned.jwtToken ?? missing
    const kept = exchange.extensions.get(this.#extension)
    if (typeof kept === 'string') return kept
    const found = this.#place.find(exchange)
    if (typeof found !== 'string') return found === none ? missing : several
    this.#place.remove(exchange.request)
    // No policy has verified this token, so none has refused it.
    if (isRevoked(claimsOf(found) ?? {})) return revoked
    exchange.extensions.set(this.#extension, found)
    return found
  }
}

const challenge = [['www-authenticate', 'Bearer realm="Restricted"']] as const

const missing: RespondVerdict = {
  ...refuse(
    401,
    reason,
    'the backend needs a token of the client',
    'the request has no token that can be exchanged',
  ),
  headers: challenge,
}

const several: RespondVerdict = {
  ...refuse(
    401,
    reason,
    'the backend needs one token of the client',
    'the request has several tokens',
  ),
  headers: challenge,
}

const revoked: RespondVerdict = {
  ...refuse(401, reason, 'the backend needs a valid token of the client', revokedText),
  headers: [
    [
      'www-authenticate',
      `Bearer realm="Restricted", error="invalid_token", error_description="${revokedText}"`,
    ],
  ],
}

export const refuseUser = (why: string): RespondVerdict =>
  refuse(403, reason, 'no credential for the backend is issued to this user', why)

/** Asks for a token with more claims, as Microsoft Entra demands them. */
export function demandClaims(claims: string, why: string): RespondVerdict {
  const encoded = Buffer.from(claims).toString('base64url')
  const value = `Bearer realm="Restricted", error="insufficient_claims", claims="${encoded}"`
  return {
    ...refuse(401, reason, 'the token of the client lacks claims for the backend', why),
    headers: [['www-authenticate', value]],
  }
}

/** The claims of a token, which is not verified here; undefined if it is no JWT. */
export function claimsOf(token: string): Readonly<Record<string, unknown>> | undefined {
  const read = readToken(token)
  return typeof read === 'string' ? undefined : read.claims
}

/** The responses to requests without a valid token, with challenges (RFC 9110 11.6.1, RFC 6750 3, RFC 9449 7.1). */
import { errorDescription } from '../../../engines/auth/authorization-header.ts'
import { type FieldPair, type RespondVerdict, refuse } from '../../../ground/exchange/exchange.ts'
import { proofAlgorithms } from '../../tokens/proofs.ts'
import type { JwtConfig } from './config.ts'

const reason = 'JwtAuth'
const bearer = 'Bearer realm="Restricted"'
const proof = `DPoP realm="Restricted", algs="${proofAlgorithms.join(' ')}"`

export class Refusals {
  /** Refusals by detail. There are few texts, and none contains a part of the token. */
  readonly #invalid = new Map<string, RespondVerdict>()
  readonly #schemes: readonly string[]
  /** For requests without a token. */
  readonly missing: RespondVerdict

  constructor({ dpop }: JwtConfig) {
    this.#schemes = dpop === undefined ? [bearer] : dpop.required ? [proof] : [bearer, proof]
    this.missing = this.#response('no bearer token found', 'no bearer token found', '')
  }

  /** Returns the refusal of a token. `detail` is recorded in place of `why`. */
  invalid(why: string, detail = why): RespondVerdict {
    let found = this.#invalid.get(detail)
    if (found === undefined) {
      found = this.#response(why, detail, `, error="invalid_token", ${errorDescription(why)}`)
      this.#invalid.set(detail, found)
    }
    return found
  }

  #response(why: string, detail: string, parameters: string): RespondVerdict {
    const headers = this.#schemes.map((scheme) => challenge(`${scheme}${parameters}`))
    return { ...refuse(401, reason, `authentication failure: ${why}`, detail), headers }
  }
}

const challenge = (value: string): FieldPair => ['www-authenticate', value]

/** Refuses a token whose proof is missing or not valid. */
export const invalidProof = (why: string): RespondVerdict => refusedProof('invalid_dpop_proof', why)

function refusedProof(error: string, why: string, more: readonly FieldPair[] = []): RespondVerdict {
  const value = `${proof}, error="${error}", ${errorDescription(why)}`
  return {
    ...refuse(401, reason, `authentication failure: ${why}`, why),
    headers: [challenge(value), ...more],
  }
}

/** Asks for the same request with a nonce (RFC 9449 section 9). */
export function nonceRequired(nonce: string | undefined): RespondVerdict {
  if (nonce === undefined) return unavailable('the gateway does not have its key yet')
  const why = 'the proof needs the nonce of the header DPoP-Nonce'
  return refusedProof('use_dpop_nonce', why, [
    ['dpop-nonce', nonce],
    ['cache-control', 'no-store'],
  ])
}

/** Refuses a token that cannot be checked at the moment. */
export function unavailable(detail: string): RespondVerdict {
  const text = 'the token cannot be checked at the moment; try again later'
  return { ...refuse(503, reason, text, detail), headers: [['retry-after', '5']] }
}

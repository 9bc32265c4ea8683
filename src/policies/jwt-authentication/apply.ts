/** JSON Web Tokens of clients, as bearer tokens (RFC 6750 section 2.1). */
import { ambiguous, credentialsOf, none } from '../../auth/authorization-header.ts'
import { TokenVerifier } from '../../auth/jwt/verifier.ts'
import { next, type RespondVerdict, type Verdict } from '../../exchange/exchange.ts'
import type { LearnedRecord } from '../../exchange/learned.ts'
import type { PolicyApply } from '../define.ts'
import { type JwtAuthenticationConfig, shape } from './config.ts'

const apply: PolicyApply<JwtAuthenticationConfig> = {
  shape,
  bind({ mode, providers }) {
    const verifier = new TokenVerifier(providers)
    return {
      onRequest({ request, learned }): Verdict {
        const token = credentialsOf(request.headers, 'bearer')
        if (token === none) return mode === 'Strict' ? missing : next
        const claims =
          token === ambiguous
            ? 'the token is invalid or malformed'
            : verifier.verify(token, Date.now())
        if (typeof claims === 'string' || token === ambiguous) {
          return mode === 'Permissive' ? next : refusal(String(claims))
        }
        request.headers.remove('authorization')
        // From JSON, so that it is plain data.
        learned.jwt = claims as LearnedRecord
        learned.jwtToken = token
        return next
      },
    }
  },
}

export default apply

/** Texts are few; none holds a part of the token. */
const refusals = new Map<string, RespondVerdict>()

function refusal(why: string): RespondVerdict {
  const known = refusals.get(why)
  if (known !== undefined) return known
  const made: RespondVerdict = {
    kind: 'respond',
    status: 401,
    body: `authentication failure: ${why}`,
    reason: 'JwtAuth',
    refusal: true,
  }
  refusals.set(why, made)
  return made
}

const missing = refusal('no bearer token found')

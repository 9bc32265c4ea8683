/** Verifies JSON Web Tokens that clients send as bearer tokens (RFC 6750 section 2.1). */
import {
  ambiguous,
  bearerChallenge,
  credentialsOf,
  invalidTokenChallenge,
  none,
} from '../../../engines/auth/authorization-header.ts'
import { algorithms } from '../../../engines/auth/jwt/key-set.ts'
import { TokenVerifier } from '../../../engines/auth/jwt/verifier.ts'
import {
  choice,
  type Infer,
  list,
  map,
  optional,
  record,
  text,
} from '../../../ground/base/shape.ts'
import {
  next,
  type RespondVerdict,
  refuse,
  type Verdict,
} from '../../../ground/exchange/exchange.ts'
import type { LearnedRecord } from '../../../ground/exchange/learned.ts'
import { addNote } from '../../../ground/exchange/notes.ts'
import type { PolicyApply } from '../define.ts'

export const verificationKey = record({
  kid: optional(text),
  algorithms: list(choice(...algorithms)),
  jwk: map(text),
})

/** The compiled form that proxies receive. Keys are public. If a provider has no keys, its tokens are rejected. */
const shape = record({
  mode: choice('Strict', 'Optional', 'Permissive'),
  providers: list(
    record({
      issuer: optional(text),
      audiences: optional(list(text)),
      keys: list(verificationKey),
    }),
  ),
})

const apply: PolicyApply<Infer<typeof shape>> = {
  shape,
  bind({ mode, providers }) {
    const verifier = new TokenVerifier(providers)
    return {
      onRequest(exchange): Verdict {
        const { request, learned } = exchange
        const token = credentialsOf(request.headers, 'bearer')
        if (token === none) return mode === 'Strict' ? missing : next
        const claims =
          token === ambiguous
            ? 'the token is invalid or malformed'
            : verifier.verify(token, Date.now())
        if (typeof claims === 'string' || token === ambiguous) {
          const why = token === ambiguous ? 'several Authorization headers' : String(claims)
          if (mode !== 'Permissive') return refusal(String(claims), why)
          addNote(exchange, 'traffic.jwtAuthentication', why)
          return next
        }
        request.headers.remove('authorization')
        // Claims are parsed from JSON, so they are plain data.
        learned.jwt = claims as LearnedRecord
        learned.jwtToken = token
        return next
      },
    }
  },
}

export default apply

/** Caches refusals by detail. There are few texts, and none contains a part of the token. */
const refusals = new Map<string, RespondVerdict>()

function refusal(
  why: string,
  detail = why,
  headers: RespondVerdict['headers'] = invalidTokenChallenge,
): RespondVerdict {
  const known = refusals.get(detail)
  if (known !== undefined) return known
  const made = { ...refuse(401, 'JwtAuth', `authentication failure: ${why}`, detail), headers }
  refusals.set(detail, made)
  return made
}

const missing = refusal('no bearer token found', undefined, bearerChallenge)

/** API keys as bearer tokens (RFC 6750 section 2.1). */
import { ambiguous, credentialsOf, none } from '../../auth/authorization-header.ts'
import { next, type RespondVerdict, type Verdict } from '../../exchange/exchange.ts'
import type { PolicyApply } from '../define.ts'
import type { ApiKeyAuthenticationConfig } from './config.ts'
import { ApiKeys } from './keys.ts'

const apply: PolicyApply<ApiKeyAuthenticationConfig> = {
  bind({ mode, entries }, _callouts, secrets) {
    const keys = new ApiKeys(entries.map((digest) => secrets.value(digest)))
    return {
      onRequest({ request, learned }): Verdict {
        const key = credentialsOf(request.headers, 'bearer')
        if (key === none) return mode === 'Optional' ? next : missing
        const found = key === ambiguous ? undefined : keys.find(key)
        if (found === undefined || key === ambiguous) return invalid
        request.headers.remove('authorization')
        learned.apiKey = found
        learned.apiKeyToken = key
        return next
      },
    }
  },
}

export default apply

const refusal = (why: string): RespondVerdict => ({
  kind: 'respond',
  status: 401,
  body: `api key authentication failure: ${why}`,
  reason: 'APIKeyAuth',
  refusal: true,
})
const missing = refusal('no API Key found')
const invalid = refusal('invalid credentials')

/**
 * API keys as bearer tokens (RFC 6750 section 2.1). On routes to model providers the places where SDKs
 * of their vendors put keys count as well.
 */
import {
  ambiguous,
  type Credentials,
  credentialsOf,
  none,
} from '../../auth/authorization-header.ts'
import { removeVendorKeys, vendorKeysOf } from '../../auth/vendor-keys.ts'
import { choice, list, record, type Shape, text } from '../../base/shape.ts'
import {
  next,
  type RequestHead,
  type RespondVerdict,
  type Verdict,
} from '../../exchange/exchange.ts'
import { forwardingFacts } from '../../exchange/forwarding.ts'
import type { PolicyApply } from '../define.ts'
import { ApiKeys } from './keys.ts'

/** Version 1. */
export interface ApiKeyAuthenticationConfig {
  readonly mode: 'Strict' | 'Optional'
  /**
   * Digests of entries of Secrets, each a key as text, or JSON with `key` and `metadata`. Where
   * there is none, no key is valid.
   */
  readonly entries: readonly string[]
}

const shape: Shape<ApiKeyAuthenticationConfig> = record({
  mode: choice('Strict', 'Optional'),
  entries: list(text),
})

const apply: PolicyApply<ApiKeyAuthenticationConfig> = {
  shape,
  bind({ mode, entries }, _callouts, secrets) {
    const keys = new ApiKeys(entries.map((digest) => secrets.value(digest)))
    return {
      onRequest({ request, learned, facts }): Verdict {
        const isModelRoute = facts.get(forwardingFacts.isModelRoute) === true
        const bearer = credentialsOf(request.headers, 'bearer')
        const key = isModelRoute ? onlyKeyOf(request, bearer) : bearer
        if (key === none) return mode === 'Optional' ? next : missing
        const found = key === ambiguous ? undefined : keys.find(key)
        if (found === undefined || key === ambiguous) return invalid
        if (bearer !== none) request.headers.remove('authorization')
        if (isModelRoute) removeVendorKeys(request)
        learned.apiKey = found
        learned.apiKeyToken = key
        return next
      },
    }
  },
}

export default apply

/** Some clients send the same key in several places; different keys leave open which one counts. */
function onlyKeyOf(request: RequestHead, bearer: Credentials): Credentials {
  const others = vendorKeysOf(request)
  if (others.size === 0 || bearer === ambiguous) return bearer
  const keys = bearer === none ? others : new Set([bearer, ...others])
  const [key = none] = keys
  return keys.size === 1 ? key : ambiguous
}

const refusal = (why: string): RespondVerdict => ({
  kind: 'respond',
  status: 401,
  body: `api key authentication failure: ${why}`,
  reason: 'APIKeyAuth',
  refusal: true,
})
const missing = refusal('no API Key found')
const invalid = refusal('invalid credentials')

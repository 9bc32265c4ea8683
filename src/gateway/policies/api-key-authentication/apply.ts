/**
 * API keys as bearer tokens (RFC 6750 section 2.1). Keys are also accepted in other places if
 * clients of the route's backends may send them there.
 */
import {
  ambiguous,
  bearerChallenge,
  type Credentials,
  credentialsOf,
  invalidTokenChallenge,
  none,
} from '../../../engines/auth/authorization-header.ts'
import { choice, type Infer, list, record, text } from '../../../ground/base/shape.ts'
import { next, refuse, type Verdict } from '../../../ground/exchange/exchange.ts'
import { type ClientKeys, forwardingExtensions } from '../../../ground/exchange/forwarding.ts'
import type { PolicyApply } from '../define.ts'
import { ApiKeys } from './keys.ts'

/** The compiled form that proxies receive. Its version is `configVersion` of the definition. */
const shape = record({
  mode: choice('Strict', 'Optional'),
  /**
   * Digests of Secret entries. Each entry is a key as plain text, or JSON with `key` and `metadata`.
   * If the list is empty, no key is valid.
   */
  entries: list(text),
})

const apply: PolicyApply<Infer<typeof shape>> = {
  shape,
  bind({ mode, entries }, _callouts, secrets) {
    const keys = new ApiKeys(entries.map((digest) => secrets.value(digest)))
    const unknown = invalid(keys.isEmpty ? 'the policy has no usable key' : 'unknown API key')
    return {
      onRequest({ request, learned, extensions }): Verdict {
        const places = extensions.get(forwardingExtensions.clientKeys) as ClientKeys | undefined
        const bearer = credentialsOf(request.headers, 'bearer')
        const key = places === undefined ? bearer : onlyKey(places.find(request), bearer)
        if (key === none) return mode === 'Optional' ? next : missing
        if (key === ambiguous) return several
        const found = keys.find(key)
        if (found === undefined) return unknown
        if (bearer !== none) request.headers.remove('authorization')
        places?.remove(request)
        learned.apiKey = found
        learned.apiKeyToken = key
        return next
      },
    }
  },
}

export default apply

/** Some clients send the same key in several headers. If the keys differ, the request has no valid key. */
function onlyKey(others: ReadonlySet<string>, bearer: Credentials): Credentials {
  if (others.size === 0 || bearer === ambiguous) return bearer
  const keys = bearer === none ? others : new Set([bearer, ...others])
  const [key = none] = keys
  return keys.size === 1 ? key : ambiguous
}

const failure = 'api key authentication failure'
const missing: Verdict = {
  ...refuse(401, 'APIKeyAuth', `${failure}: no API Key found`, 'no API key'),
  headers: bearerChallenge,
}
const invalid = (detail: string): Verdict => ({
  ...refuse(401, 'APIKeyAuth', `${failure}: invalid credentials`, detail),
  headers: invalidTokenChallenge,
})
const several = invalid('several API keys that differ')

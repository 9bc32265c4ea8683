/**
 * API keys as bearer tokens (RFC 6750 section 2.1). Keys are also accepted in other places if
 * clients of the route's backends may send them there.
 */
import { isUtf8 } from 'node:buffer'
import {
  ambiguous,
  bearerChallenge,
  type Credentials,
  invalidTokenChallenge,
  none,
} from '../../../engines/auth/authorization-header.ts'
import { systemClock } from '../../../ground/base/clock.ts'
import { choice, type Infer, list, optional, record, text } from '../../../ground/base/shape.ts'
import {
  type Exchange,
  next,
  refuse,
  type SecretValues,
  type Verdict,
} from '../../../ground/exchange/exchange.ts'
import { type ClientKeys, forwardingExtensions } from '../../../ground/exchange/forwarding.ts'
import { routeRefusal } from '../../../ground/exchange/route-refusal.ts'
import { locationOf, locationShape } from '../../tokens/location.ts'
import type { PolicyApply } from '../define.ts'
import { type ApiKey, ApiKeys, type NamedEntry } from './keys.ts'

/** The compiled form that proxies receive. Its version is `configVersion` of the definition. */
const shape = record({
  mode: choice('Strict', 'Optional'),
  /** Digests of Secret entries (see `readApiKeyEntry`). If there are no entries, no key is valid. */
  entries: list(text),
  /** Names of these entries, in the same order. */
  names: list(text),
  /** The objects that have these entries, in the same order. */
  sources: optional(list(text)),
  location: optional(locationShape),
  /** Entries of ConfigMaps, which have hashes of keys only. */
  hashed: optional(list(record({ name: text, text, source: optional(text) }))),
})
type Config = Infer<typeof shape>

const apply: PolicyApply<Config> = {
  shape,
  bind(config, _callouts, secrets) {
    const { mode, location } = config
    const place = locationOf(location)
    const isElsewhere = location !== undefined
    const keys = new ApiKeys(entriesOf(config, secrets))
    const unknown = invalid(keys.isEmpty ? 'the policy has no usable key' : 'unknown API key')
    return {
      onRequest(exchange): Verdict {
        const { request, learned, extensions } = exchange
        const places = isElsewhere
          ? undefined
          : (extensions.get(forwardingExtensions.clientKeys) as ClientKeys | undefined)
        const own = place.find(exchange)
        const key = places === undefined ? own : onlyKey(places.find(request), own)
        if (key === none) return mode === 'Optional' ? next : missing
        if (key === ambiguous) return several
        const found = keys.find(key)
        if (found === undefined) return unknown
        const refused = refusalOf(found)
        if (refused !== undefined) return refused
        if (own !== none) place.remove(request)
        places?.remove(request)
        learned.apiKey = found.record
        learned.apiKeyToken = key
        learned.apiKeySource = found.source
        return limited(exchange, found)
      },
    }
  },
}

export default apply

function* entriesOf({ entries, names, sources = [], hashed = [] }: Config, secrets: SecretValues) {
  for (const [index, digest] of entries.entries()) {
    const bytes = secrets.value(digest)
    const text = isUtf8(bytes) ? Buffer.from(bytes).toString() : undefined
    yield { name: names[index] ?? '', text, source: sources[index] } satisfies NamedEntry
  }
  yield* hashed
}

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
function refusalOf({ isDisabled, expiresAt }: ApiKey): Verdict | undefined {
  if (isDisabled) return disabled
  return expiresAt !== undefined && systemClock.now() >= expiresAt ? expired : undefined
}

/** Passes on what the key may use. Before routing, the data plane checks its routes once the route is known. */
function limited(exchange: Exchange, { allowedModels, allowedRoutes }: ApiKey): Verdict {
  const { extensions } = exchange
  if (allowedModels !== undefined) extensions.set(forwardingExtensions.allowedModels, allowedModels)
  if (allowedRoutes === undefined) return next
  extensions.set(forwardingExtensions.allowedRoutes, allowedRoutes)
  return routeRefusal(exchange) ?? next
}

const unusable = (why: string): Verdict => ({
  ...refuse(401, 'APIKeyAuth', `${failure}: ${why}`, why),
  headers: invalidTokenChallenge,
})
const expired = unusable('the API key has expired')
const disabled = unusable('the API key is disabled')
const several = invalid('the request has different API keys')

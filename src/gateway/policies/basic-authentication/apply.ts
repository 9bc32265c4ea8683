/** HTTP Basic authentication (RFC 7617). */

import { ambiguous, none } from '../../../engines/auth/authorization-header.ts'
import { andThen } from '../../../ground/base/and-then.ts'
import { choice, type Infer, list, optional, record, text } from '../../../ground/base/shape.ts'
import {
  type Exchange,
  next,
  type RespondVerdict,
  refuse,
  type Verdict,
} from '../../../ground/exchange/exchange.ts'
import { locationOf, locationShape } from '../../tokens/location.ts'
import type { PolicyApply } from '../define.ts'
import { Users } from './users.ts'

/** The compiled form that proxies receive. Its version is `configVersion` of the definition. */
const shape = record({
  mode: choice('Strict', 'Optional'),
  realm: text,
  /**
   * Digests of texts in htpasswd format, each a single line or a whole file. If the list is empty, no
   * credentials are valid.
   */
  files: list(text),
  location: optional(locationShape),
})

const apply: PolicyApply<Infer<typeof shape>> = {
  shape,
  bind({ mode, realm, files, location }, _callouts, secrets) {
    const place = locationOf(location, 'basic')
    const users = new Users(files.map((digest) => Buffer.from(secrets.value(digest)).toString()))
    const missing = refusal(realm, 'no basic authentication credentials found', 'no credentials')
    const invalid = (detail: string) => refusal(realm, 'invalid credentials', detail)
    const several = invalid('several Authorization headers')
    const malformed = invalid('malformed credentials')
    const wrong = invalid('unknown user or wrong password')
    const settle = (fits: boolean, exchange: Exchange, user: string): Verdict => {
      if (!fits) return wrong
      place.remove(exchange.request)
      exchange.learned.basicAuth = { username: user }
      return next
    }
    return {
      onRequest(exchange): Verdict | Promise<Verdict> {
        const credentials = place.find(exchange)
        if (credentials === none) return mode === 'Optional' ? next : missing
        if (credentials === ambiguous) return several
        const pair = decode(credentials)
        if (pair === undefined) return malformed
        const fits = users.check(pair.user, pair.password, exchange)
        return andThen(fits, settle, exchange, pair.user)
      },
    }
  },
}

export default apply

function refusal(realm: string, why: string, detail: string): RespondVerdict {
  const quoted = realm.replaceAll(/["\\]/g, '\\$&')
  return {
    ...refuse(401, 'BasicAuth', `basic authentication failure: ${why}`, detail),
    headers: [['www-authenticate', `Basic realm="${quoted}"`]],
  }
}

const base64 = /^[A-Za-z0-9+/]+={0,2}$/
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
// RFC 7617 section 2 forbids control characters in both parts. Some hashes end at the first zero byte.
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not get through
const control = /[\u0000-\u001f\u007f]/

/** Returns undefined if the credentials are not base64 of UTF-8 text with a colon. */
function decode(credentials: string): { user: string; password: string } | undefined {
  if (!base64.test(credentials)) return undefined
  let text: string
  try {
    text = utf8.decode(Buffer.from(credentials, 'base64'))
  } catch {
    return undefined
  }
  const colon = text.indexOf(':')
  if (colon < 0 || control.test(text)) return undefined
  return { user: text.slice(0, colon), password: text.slice(colon + 1) }
}

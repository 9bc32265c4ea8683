/** HTTP Basic authentication (RFC 7617). */
import { ambiguous, credentialsOf, none } from '../../auth/authorization-header.ts'
import { choice, list, record, type Shape, text } from '../../base/shape.ts'
import { type Exchange, next, type RespondVerdict, type Verdict } from '../../exchange/exchange.ts'
import type { PolicyApply } from '../define.ts'
import { Users } from './users.ts'

/** Version 1. */
export interface BasicAuthenticationConfig {
  readonly mode: 'Strict' | 'Optional'
  readonly realm: string
  /**
   * Digests of texts in htpasswd format: single lines, or a whole file. Where there is none, no
   * credentials are valid.
   */
  readonly files: readonly string[]
}

const shape: Shape<BasicAuthenticationConfig> = record({
  mode: choice('Strict', 'Optional'),
  realm: text,
  files: list(text),
})

const apply: PolicyApply<BasicAuthenticationConfig> = {
  shape,
  bind({ mode, realm, files }, _callouts, secrets) {
    const users = new Users(files.map((digest) => Buffer.from(secrets.value(digest)).toString()))
    const missing = refusal(realm, 'no basic authentication credentials found')
    const invalid = refusal(realm, 'invalid credentials')
    const settle = (exchange: Exchange, user: string, fits: boolean): Verdict => {
      if (!fits) return invalid
      exchange.request.headers.remove('authorization')
      exchange.learned.basicAuth = { username: user }
      return next
    }
    return {
      onRequest(exchange): Verdict | Promise<Verdict> {
        const credentials = credentialsOf(exchange.request.headers, 'basic')
        if (credentials === none) return mode === 'Optional' ? next : missing
        const pair = credentials === ambiguous ? undefined : decode(credentials)
        if (pair === undefined) return invalid
        const fits = users.check(pair.user, pair.password)
        if (!(fits instanceof Promise)) return settle(exchange, pair.user, fits)
        return fits.then((settled) => settle(exchange, pair.user, settled))
      },
    }
  },
}

export default apply

function refusal(realm: string, why: string): RespondVerdict {
  const quoted = realm.replaceAll(/["\\]/g, '\\$&')
  return {
    kind: 'respond',
    status: 401,
    headers: [['www-authenticate', `Basic realm="${quoted}"`]],
    body: `basic authentication failure: ${why}`,
    reason: 'BasicAuth',
    refusal: true,
  }
}

const base64 = /^[A-Za-z0-9+/]+={0,2}$/
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
// RFC 7617 section 2: neither part may hold one. Some hashes end at the first zero byte.
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not get through
const control = /[\u0000-\u001f\u007f]/

/** Undefined where it is not base 64 of UTF-8 with a colon. */
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

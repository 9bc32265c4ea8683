/**
 * Decides who may use the console. Loopback is no authentication: other users, and pages in the browser of
 * this user, can reach it too.
 *
 * - The token in the printed URL works once. It is exchanged for a cookie and a key.
 * - The cookie opens only the files of the page, because browsers send cookies to every port of a host. It
 *   has the port in its name, so that several consoles do not replace each other's.
 * - The data need the key, which the page sends in `Authorization`. Other origins cannot read it.
 */
import { randomBytes, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'

/** 192 bits. */
const secretBytes = 24

const newSecret = (): string => randomBytes(secretBytes).toString('base64url')

/** Compares in constant time. */
function isEqual(given: string, secret: string): boolean {
  const bytes = Buffer.from(given)
  return bytes.length === secret.length && timingSafeEqual(bytes, Buffer.from(secret))
}

/** Loopback names only: an attacker may bind any other name to this address (DNS rebinding). */
const loopbackHost = /^(?:127(?:\.\d{1,3}){3}|localhost|\[::1\])(?::\d{1,5})?$/i

/** Whether a request names this server, and does not come from a page of another origin. */
export function isFromHere({ headers }: IncomingMessage): boolean {
  const { host = '', origin } = headers
  if (!loopbackHost.test(host)) return false
  const site = headers['sec-fetch-site']
  // A link on another page may open the console, but may not load its files or data.
  const isForeign = site === 'cross-site' || site === 'same-site'
  if (isForeign && headers['sec-fetch-mode'] !== 'navigate') return false
  return origin === undefined || origin === `http://${host}`
}

/** The bearer token of a request; empty if it has none. */
export function bearerOf({ headers }: IncomingMessage): string {
  const [scheme, token = ''] = (headers.authorization ?? '').split(' ')
  return scheme?.toLowerCase() === 'bearer' ? token : ''
}

export class ConsoleAccess {
  /** The token that has not been used yet. */
  token = newSecret()
  readonly #key = newSecret()
  readonly #cookie = newSecret()

  /** Uses up the token if it is right; the next one is different. */
  redeem(token: string): { readonly key: string; readonly cookie: string } | undefined {
    if (!isEqual(token, this.token)) return undefined
    this.token = newSecret()
    return { key: this.#key, cookie: this.#cookie }
  }

  mayReadFiles({ headers }: IncomingMessage, cookieName: string): boolean {
    const cookies = (headers.cookie ?? '').split(';').map((one) => one.trim())
    const own = cookies.find((one) => one.startsWith(`${cookieName}=`))
    return own !== undefined && isEqual(own.slice(cookieName.length + 1), this.#cookie)
  }

  mayReadData(request: IncomingMessage): boolean {
    return isEqual(bearerOf(request), this.#key)
  }
}

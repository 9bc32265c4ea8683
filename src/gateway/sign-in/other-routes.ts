/**
 * Keeps the cookies of sign-in from the backends of routes without it. Whoever has these cookies has the session of
 * the user, and browsers send them on every path of the host.
 */
import type { Exchange, HeaderFields } from '../../ground/exchange/exchange.ts'
import { readCookies, reservedPrefix } from './cookies.ts'
import { type CookieField, cookieField, textOf } from './opened-sessions.ts'

const guardedExtension = 'oidc.cookies'

/** The cookies of a request with sign-in, as the browser sent them; undefined before the step of the policy. */
export const guardedField = ({ extensions }: Exchange): CookieField | undefined =>
  extensions.get(guardedExtension) as CookieField | undefined

/** Leaves only the cookies `others` in a request with sign-in. `field` has those that the browser sent, and must stay valid. */
export function guardCookies(exchange: Exchange, others: string, field: CookieField): void {
  exchange.extensions.set(guardedExtension, field)
  setCookies(exchange.request.headers, others)
}

/** Whether a request still has cookies of sign-in. */
export const hasReserved = ({ request }: Exchange): boolean =>
  cookieField(request.headers).includes(reservedPrefix)

/** Removes the cookies of sign-in from a request. */
export const hideCookies = ({ request: { headers } }: Exchange): void =>
  setCookies(headers, readCookies(textOf(cookieField(headers))).others)

function setCookies(headers: HeaderFields, others: string): void {
  if (others === '') headers.remove('cookie')
  else headers.set('cookie', others)
}

/** Removes cookies of a backend whose names are those of sign-in: they could put a browser into another's session. */
export function dropReserved(headers: HeaderFields): void {
  const all = headers.getAll('set-cookie')
  const kept = all.filter((cookie) => !cookie.trimStart().startsWith(reservedPrefix))
  if (kept.length === all.length) return
  headers.remove('set-cookie')
  for (const cookie of kept) headers.add('set-cookie', cookie)
}

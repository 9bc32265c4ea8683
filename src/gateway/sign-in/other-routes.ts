/**
 * Removes the cookies of sign-in from requests to backends. Browsers send them on every path of the host, also to
 * routes without sign-in, and a backend that receives them could act as the user.
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

/** Removes the cookies of sign-in from a request. */
export function hideCookies({ request: { headers } }: Exchange): void {
  const field = cookieField(headers)
  if (field.includes(reservedPrefix)) setCookies(headers, readCookies(textOf(field)).others)
}

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

/** Responses of sign-in. None of them may be cached. */
import { type RequestHead, type RespondVerdict, refuse } from '../../ground/exchange/exchange.ts'
import { ProviderError } from './provider.ts'

const reason = 'OIDC'
const uncached = [
  ['cache-control', 'no-store'],
  ['referrer-policy', 'no-referrer'],
] as const

const asFields = (cookies: readonly string[]) =>
  cookies.map((cookie) => ['set-cookie', cookie] as const)

/** Sends the browser elsewhere. */
export function redirect(
  location: string,
  cookies: readonly string[],
  detail: string,
): RespondVerdict {
  const headers = [['location', location] as const, ...uncached, ...asFields(cookies)]
  return { kind: 'respond', status: 302, headers, reason, detail }
}

/** Refuses with a text for the user. */
export function problem(
  status: number,
  text: string,
  detail = text,
  cookies: readonly string[] = [],
): RespondVerdict {
  return { ...refuse(status, reason, text, detail), headers: [...uncached, ...asFields(cookies)] }
}

export function page(html: string, cookies: readonly string[], detail: string): RespondVerdict {
  const headers = [
    ['content-type', 'text/html; charset=utf-8'] as const,
    ['content-security-policy', "default-src 'none'; frame-ancestors 'none'"] as const,
    ...uncached,
    ...asFields(cookies),
  ]
  return { kind: 'respond', status: 200, headers, body: html, reason, detail }
}

export function jsonResponse(
  status: number,
  value: object,
  cookies: readonly string[],
  detail: string,
): RespondVerdict {
  const headers = [['content-type', 'application/json'] as const, ...uncached, ...asFields(cookies)]
  return { kind: 'respond', status, headers, body: JSON.stringify(value), reason, detail }
}

/** A response without a body. */
export function empty(cookies: readonly string[], detail: string): RespondVerdict {
  const headers = [...uncached, ...asFields(cookies)]
  return { kind: 'respond', status: 200, headers, body: '', reason, detail }
}

/**
 * Tells a script to open a page for the sign-in. Parameters of the challenge are quoted, so they must have neither
 * quotes nor backslashes.
 */
export function challenge(parameters: Readonly<Record<string, string>>): RespondVerdict {
  const fields = Object.entries(parameters).map(([name, value]) => `${name}="${value}"`)
  const headers = [['www-authenticate', `Bearer ${fields.join(', ')}`] as const, ...uncached]
  const detail = parameters.error ?? 'login_required'
  return { ...refuse(401, reason, `sign-in is required (${detail})`, detail), headers }
}

/** The response if the provider did not give what was asked for. */
export function providerProblem(error: unknown, cookies: readonly string[] = []): RespondVerdict {
  if (!(error instanceof ProviderError)) throw error
  switch (error.kind) {
    case 'unavailable':
      return unavailable('the identity provider is not available', error.message)
    case 'refused':
      return problem(403, 'the sign-in was refused', error.message, cookies)
    case 'invalid':
      return problem(
        400,
        'the answer of the identity provider is not valid',
        error.message,
        cookies,
      )
  }
}

export function unavailable(why: string, detail: string): RespondVerdict {
  const refused = refuse(503, reason, `sign-in is not available: ${why}; try again later`, detail)
  return { ...refused, headers: [['retry-after', '5'] as const, ...uncached] }
}

/** The parameters of the query; empty without one. */
export const parametersOf = ({ query }: RequestHead): URLSearchParams =>
  new URLSearchParams(query ?? '')

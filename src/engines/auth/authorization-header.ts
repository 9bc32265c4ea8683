/** Credentials in the Authorization field (RFC 9110 11.6.2). */

/**
 * Returns the credentials after the scheme, or `none` if the field is missing or has another scheme.
 * Returns `ambiguous` if there are several fields, because another server may choose a different one.
 */
export function credentialsOf(
  fields: { lines(name: string): string | readonly string[] | undefined },
  scheme: 'basic' | 'bearer',
): Credentials {
  const value = fields.lines('authorization')
  if (value === undefined) return none
  if (typeof value !== 'string') return ambiguous
  const end = value.indexOf(' ')
  if (end < 0 || value.slice(0, end).toLowerCase() !== scheme) return none
  return value.slice(end + 1).trim()
}

/** The text of the credentials, or why there are no usable credentials. */
export type Credentials = string | typeof none | typeof ambiguous

/**
 * Header fields of a 401 to a client that needs a bearer token or an API key (RFC 9110 15.5.2, RFC 6750 3).
 * Without credentials, the challenge has no error code.
 */
export const bearerChallenge = [['www-authenticate', 'Bearer realm="Restricted"']] as const
export const invalidTokenChallenge = [
  ['www-authenticate', 'Bearer realm="Restricted", error="invalid_token"'],
] as const

export const none = Symbol('no credentials')
export const ambiguous = Symbol('several credentials')

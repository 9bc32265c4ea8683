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

export const none = Symbol('no credentials')
export const ambiguous = Symbol('several credentials')

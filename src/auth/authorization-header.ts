/** Credentials in the Authorization field (RFC 9110 11.6.2). */

interface Fields {
  getAll(name: string): string[]
}

/**
 * What follows the scheme. Undefined where there is no such field or it names another scheme: then
 * no credentials were given. Several fields are no credentials that anybody may trust: which one
 * counts would be a guess, and another server may guess differently.
 */
export function credentialsOf(fields: Fields, scheme: 'basic' | 'bearer'): Credentials {
  const values = fields.getAll('authorization')
  const [value] = values
  if (value === undefined) return none
  if (values.length > 1) return ambiguous
  const end = value.indexOf(' ')
  if (end < 0 || value.slice(0, end).toLowerCase() !== scheme) return none
  return value.slice(end + 1).trim()
}

/** The text of the credentials, or why there is none. */
export type Credentials = string | typeof none | typeof ambiguous

export const none = Symbol('no credentials')
export const ambiguous = Symbol('several credentials')

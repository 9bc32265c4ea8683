/** Credentials in the Authorization field (RFC 9110 11.6.2). */

/**
 * Whether a byte of a field value is white space to some server: space and tab, or one of the two such characters
 * of Latin-1, which servers that split a text at any white space accept.
 */
const isSpace = (code: number) => code === 0x20 || code === 0x09 || code === 0x85 || code === 0xa0

/**
 * Returns the credentials after the scheme and any white space, or `none` if the field is missing or has another scheme.
 * Returns `ambiguous` if there are several fields, because another server may choose a different one.
 */
export function credentialsOf(
  fields: { lines(name: string): string | readonly string[] | undefined },
  scheme: 'basic' | 'bearer',
): Credentials {
  return schemeCredentialsOf(fields, 'authorization', scheme)
}

/** Does the same for a field of another name. `scheme` is in lower case. */
export function schemeCredentialsOf(
  fields: { lines(name: string): string | readonly string[] | undefined },
  name: string,
  scheme: string,
): Credentials {
  const value = fields.lines(name)
  if (value === undefined) return none
  if (typeof value !== 'string') return ambiguous
  return afterScheme(value, scheme)
}

/** A server may accept any white space after a scheme, so a policy must not take it for another scheme. */
function afterScheme(value: string, scheme: string): string | typeof none {
  let start = 0
  let end = value.length
  while (start < end && isSpace(value.charCodeAt(start))) start++
  while (end > start && isSpace(value.charCodeAt(end - 1))) end--
  let at = start + scheme.length
  if (at >= end || !isSpace(value.charCodeAt(at))) return none
  if (value.slice(start, at).toLowerCase() !== scheme) return none
  while (isSpace(value.charCodeAt(at))) at++
  return value.slice(at, end)
}

/** The text of the credentials, or why there are no usable credentials. */
export type Credentials = string | typeof none | typeof ambiguous

/** Characters that cannot stand in `error_description` (RFC 6750 section 3). */
const notDescription = /[^ !#-[\]-~]/g

/** Writes a text as the parameter `error_description`, with an apostrophe for each character that it cannot have. */
export const errorDescription = (text: string): string =>
  `error_description="${text.replace(notDescription, "'").replaceAll('`', "'")}"`

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

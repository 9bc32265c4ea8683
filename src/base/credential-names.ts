/** Names of header fields and query parameters that carry credentials: the only such list. */

const names: ReadonlySet<string> = new Set([
  'authorization',
  'proxy-authorization',
  'cookie',
  'cookie2',
  'auth',
  'credential',
  'credentials',
  'helicone-auth',
  'jwt',
  'password',
  'passwd',
  'secret',
  'sig',
  'signature',
  'token',
  'awsaccesskeyid',
])

/** The last words of names such as `x-api-key`, `ocp-apim-subscription-key` and `client_secret`. */
const ending =
  /(?:^|-)(?:(?:api|subscription|functions)-?key|access-?key(?:-?id)?|(?:access|auth|authorization|bearer|id|identity|iam|oauth|refresh|secret|security|session|user)-?token|jwt-?assertion|(?:client|api|app)-?secret|secret-?key)$/

/** Credentials, signatures and dates of signed requests. */
const signing = /^x-(?:amz-|goog-(?:credential|signature)$|ms-token-)/

/** Is the value of a field or parameter of this name a credential? */
export function isCredentialName(name: string): boolean {
  const plain = name.toLowerCase().replace(/[_.]/g, '-')
  return names.has(plain) || signing.test(plain) || ending.test(plain)
}

const hint = /key|tok|auth|sig|secret|pass|cred|jwt|amz|cookie|%/i

/** A quick look at a whole query: false if none of its parameters has such a name. */
export function mayNameCredential(query: string): boolean {
  return hint.test(query)
}

/** Stands in for credentials in everything that people read. */
export const redacted = '<redacted>'

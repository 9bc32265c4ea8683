/** The only list of header fields and query parameters that carry credentials. */

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

/** Matches the endings of names such as `x-api-key`, `ocp-apim-subscription-key` and `client_secret`. */
const ending =
  /(?:^|-)(?:(?:api|subscription|functions)-?key|access-?key(?:-?id)?|(?:access|auth|authorization|bearer|id|identity|iam|oauth|refresh|secret|security|session|user)-?token|jwt-?assertion|(?:client|api|app)-?secret|secret-?key)$/

/** Matches fields of signed requests: credentials, signatures and dates. */
const signing = /^x-(?:amz-|goog-(?:credential|signature)$|ms-token-)/

/** Every name above fits this. */
const hint = /key|tok|auth|sig|secret|pass|cred|jwt|amz|cookie|session|%/i

/** Quick check of a whole query: returns false only if no parameter has the name of a credential. */
export function mayNameCredential(query: string): boolean {
  return hint.test(query)
}

/** Results for names that were asked for before; most requests have the same ones. */
const results = new Map<string, boolean>()
const maxResults = 256
const maxKeptLength = 64

/** Returns true if the value of a field or parameter with this name is a credential. */
export function isCredentialName(name: string): boolean {
  const known = results.get(name)
  if (known !== undefined) return known
  const found = namesCredential(name)
  if (results.size < maxResults && name.length <= maxKeptLength) results.set(name, found)
  return found
}

function namesCredential(name: string): boolean {
  const lower = name.toLowerCase()
  if (!hint.test(lower)) return false
  const plain = lower.replace(/[_.]/g, '-')
  return names.has(plain) || signing.test(plain) || ending.test(plain)
}

/** Placeholder for credentials in logs and other output for people. */
export const redacted = '<redacted>'

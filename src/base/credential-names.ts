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

/** Returns true if the value of a field or parameter with this name is a credential. */
export function isCredentialName(name: string): boolean {
  const plain = name.toLowerCase().replace(/[_.]/g, '-')
  return names.has(plain) || signing.test(plain) || ending.test(plain)
}

const hint = /key|tok|auth|sig|secret|pass|cred|jwt|amz|cookie|session|%/i

/** Quick check of a whole query: returns false only if no parameter has the name of a credential. */
export function mayNameCredential(query: string): boolean {
  return hint.test(query)
}

/** Placeholder for credentials in logs and other output for people. */
export const redacted = '<redacted>'

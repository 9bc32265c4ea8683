/** The only list of header fields and query parameters that carry credentials. */

const names: ReadonlySet<string> = new Set([
  'cookie',
  'cookie2',
  'password',
  'passwd',
  'secret',
  'sig',
  'signature',
  'token',
  'awsaccesskeyid',
])

/** Matches the endings of names such as `x-api-key`, `ocp-apim-subscription-key` and `webhook_secret`. */
const ending =
  /(?:(?:^|-)(?:(?:account|admin|api|app|application|auth|aws|client|consumer|encryption|functions|hmac|license|master|private|rapidapi|root|secret|service|shared|signing|ssh|subscription|user)-?key|access-?key(?:-?id)?|pass|pwd|auth|authentication|authorization|bearer|credentials?|jwt|client-cert)|token|secret|password|passwd|passphrase|passcode|assertion)$/

/** Matches words that name a credential wherever they stand, as in `my-secret-thing`. */
const word = /(?:^|-)(?:secret|password|passwd)-/

/** Matches tokens that are positions in a list or parts of a text. They are not credentials. */
const position =
  /(?:after|before|bos|change|continuation|continue|cursor|delta|end|eos|first|last|mask|next|page|pad|position|prev|previous|progress|resume|skip|start|stop|sync|unk)-?token$/

/** Matches fields of signed requests: credentials, signatures and dates. */
const signing = /^x-(?:amz-|amzn-oidc-|goog-(?:credential|signature)$|ms-token-)/

/** Every name above fits this. */
const hint =
  /key|tok|auth|sig|secret|pass|pwd|cred|jwt|amz|assert|cookie|session|sid|code|ticket|otp|saml|hmac|verifier|bearer|client.cert|%/i

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
  if (names.has(plain) || signing.test(plain) || word.test(plain)) return true
  return ending.test(plain) && !position.test(plain)
}

/** Parameters that carry credentials in a query, although headers and fields with these names do not. */
const parameters: ReadonlySet<string> = new Set([
  'code',
  'code-verifier',
  'hmac',
  'oauth-verifier',
  'otp',
  'samlrequest',
  'samlresponse',
  'session',
  'session-id',
  'sessionid',
  'sid',
  'ticket',
])

/** Maximum number of times that an encoded name or value is decoded. */
const maxDecodings = 3

/**
 * Returns true if the value of a query parameter must not be recorded or shown: the name is that of a
 * credential, also as `user[password]` or encoded again, or the value is a URL or a query with such a
 * parameter. Linear in the length of both.
 */
export function isCredentialParameter(name: string, value = ''): boolean {
  const plain = decodeAgain(name)
  const parts = plain.split(/[[\]]+/).filter((part) => part !== '')
  if ([plain, ...parts].some(isParameterName)) return true
  if (!value.includes('=') && !value.includes('%')) return false
  const pieces = decodeAgain(value).split(/[?&;#]/)
  return pieces.some((piece) => {
    const equals = piece.indexOf('=')
    if (equals < 0) return false
    return piece
      .slice(0, equals)
      .split(/[[\]]+/)
      .some(isParameterName)
  })
}

const isParameterName = (name: string) =>
  isCredentialName(name) || parameters.has(name.toLowerCase().replace(/[_.]/g, '-'))

/** Decodes a text that was encoded more than once. Invalid escapes end the decoding. */
function decodeAgain(text: string): string {
  let decoded = text
  for (let round = 0; round < maxDecodings && decoded.includes('%'); round++) {
    try {
      decoded = decodeURIComponent(decoded)
    } catch {
      return decoded
    }
  }
  return decoded
}

/** Placeholder for credentials in logs and other output for people. */
export const redacted = '<redacted>'

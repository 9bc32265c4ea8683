/** JSON Web Key Sets (RFC 7517): what of one may verify tokens, each key with its algorithms. */

export const algorithms = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
] as const

export type Algorithm = (typeof algorithms)[number]

/** Public members only. */
export type PublicJwk = Readonly<Record<string, string>>

export interface VerificationKey {
  readonly kid?: string
  /** What a token that names this key may be signed with, whatever its header says. */
  readonly algorithms: readonly Algorithm[]
  readonly jwk: PublicJwk
}

export interface KeySet {
  readonly keys: readonly VerificationKey[]
  /** Keys that are left out, and why; in words that hold no key material. */
  readonly skipped: readonly string[]
}

type Fields = Readonly<Record<string, unknown>>

interface Family {
  readonly algorithms: readonly Algorithm[]
  readonly members: readonly string[]
}

const rsa: Family = {
  algorithms: ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'],
  members: ['n', 'e'],
}
const curve = (algorithm: Algorithm, members: readonly string[]): Family => ({
  algorithms: [algorithm],
  members: ['crv', ...members],
})
const families: Readonly<Record<string, Family>> = {
  'RSA ': rsa,
  'EC P-256': curve('ES256', ['x', 'y']),
  'EC P-384': curve('ES384', ['x', 'y']),
  'EC P-521': curve('ES512', ['x', 'y']),
  'OKP Ed25519': curve('EdDSA', ['x']),
}

/** Names of members that only private and symmetric keys have (RFC 7518 section 6). */
const privateMembers = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k']

const base64Url = /^[A-Za-z0-9_-]+$/
/** 2048 bits (RFC 7518 section 3.3), in digits of base 64. */
const leastModulus = 342

/** A message where it is no key set at all. */
export function readKeySet(value: unknown): KeySet | string {
  const keys = (value as Fields | null)?.keys
  if (typeof value !== 'object' || !Array.isArray(keys)) return 'is no object with a list "keys"'
  const found: VerificationKey[] = []
  const skipped: string[] = []
  keys.forEach((key: unknown, index) => {
    const read = readKey(key)
    if (typeof read === 'object') found.push(read)
    else if (read !== '') skipped.push(`keys[${index}] ${read}`)
  })
  return { keys: found, skipped }
}

/** As `readKeySet`, from JSON. */
export function parseKeySet(text: string): KeySet | string {
  try {
    return readKeySet(JSON.parse(text))
  } catch {
    return 'is not JSON'
  }
}

/** Is there anything in a key set that must not be published? */
export function holdsPrivateKey(text: string): boolean {
  try {
    const { keys } = JSON.parse(text) as { keys: readonly Fields[] }
    return keys.some((key) => privateMembers.some((member) => Object.hasOwn(key, member)))
  } catch {
    return false
  }
}

/** The key; or why it is left out; empty where it is simply for something else. */
function readKey(value: unknown): VerificationKey | string {
  if (typeof value !== 'object' || value === null) return 'is no object'
  const key = value as Fields
  const { kty, use, key_ops: operations, kid, alg } = key
  if (use !== undefined && use !== 'sig') return ''
  if (Array.isArray(operations) && !operations.includes('verify')) return ''
  if (kty === 'oct') return 'is symmetric: whoever can verify with it could sign'
  const family = families[`${kty} ${kty === 'RSA' ? '' : key.crv}`]
  if (family === undefined) return 'is of a type that is not supported'
  if (kid !== undefined && typeof kid !== 'string') return 'has a kid that is no text'
  const jwk = members(key, family)
  if (jwk === undefined) return 'lacks a member, or has one that is not base64url'
  if (kty === 'RSA' && (jwk.n?.length ?? 0) < leastModulus) return 'is shorter than 2048 bits'
  const algorithms = pinned(family, alg)
  if (algorithms.length === 0) return 'names an algorithm that does not fit it'
  return { ...(kid !== undefined && { kid }), algorithms, jwk: { kty: String(kty), ...jwk } }
}

function members(key: Fields, { members: names }: Family): PublicJwk | undefined {
  const found: Record<string, string> = {}
  for (const name of names) {
    const value = key[name]
    if (typeof value !== 'string' || (name !== 'crv' && !base64Url.test(value))) return undefined
    found[name] = value
  }
  return found
}

/** The one that the key names; `Ed25519` is the later name of `EdDSA` (RFC 9864). */
function pinned({ algorithms }: Family, alg: unknown): readonly Algorithm[] {
  if (alg === undefined) return algorithms
  const named = alg === 'Ed25519' ? 'EdDSA' : alg
  return algorithms.filter((algorithm) => algorithm === named)
}

/** JSON Web Key Sets (RFC 7517): the keys that tokens are verified with, each with its algorithms. */

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

/** A JWK with its public members only. */
type PublicJwk = Readonly<Record<string, string>>

export interface VerificationKey {
  readonly kid?: string
  /** Algorithms that may be used with this key, whatever the header of a token says. */
  readonly algorithms: readonly Algorithm[]
  readonly jwk: PublicJwk
}

export interface KeySet {
  readonly keys: readonly VerificationKey[]
  /** Reasons why keys were skipped, without key material. */
  readonly skipped: readonly string[]
}

type Fields = Readonly<Record<string, unknown>>

interface KeyFamily {
  readonly algorithms: readonly Algorithm[]
  readonly members: readonly string[]
}

const rsa: KeyFamily = {
  algorithms: ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'],
  members: ['n', 'e'],
}
const curve = (algorithm: Algorithm, members: readonly string[]): KeyFamily => ({
  algorithms: [algorithm],
  members: ['crv', ...members],
})
const keyFamilies: Readonly<Record<string, KeyFamily>> = {
  'RSA ': rsa,
  'EC P-256': curve('ES256', ['x', 'y']),
  'EC P-384': curve('ES384', ['x', 'y']),
  'EC P-521': curve('ES512', ['x', 'y']),
  'OKP Ed25519': curve('EdDSA', ['x']),
}

/** Members that only private and symmetric keys have (RFC 7518 section 6). */
const privateMembers = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k']

const base64Url = /^[A-Za-z0-9_-]+$/
/** Minimum length of a modulus in base64url characters: 2048 bits (RFC 7518 section 3.3). */
const minModulusLength = 342

/** Returns an error message if the value is not a key set. */
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

/** Like `readKeySet`, from JSON. */
export function parseKeySet(text: string): KeySet | string {
  try {
    return readKeySet(JSON.parse(text))
  } catch {
    return 'is not JSON'
  }
}

/** Returns true if a key set contains private or symmetric keys, which must not be published. */
export function holdsPrivateKey(text: string): boolean {
  try {
    const { keys } = JSON.parse(text) as { keys: readonly Fields[] }
    return keys.some((key) => privateMembers.some((member) => Object.hasOwn(key, member)))
  } catch {
    return false
  }
}

/** Returns the key, or why it is skipped; the reason is empty if the key has another purpose. */
function readKey(value: unknown): VerificationKey | string {
  if (typeof value !== 'object' || value === null) return 'is no object'
  const key = value as Fields
  const { kty, use, key_ops: operations, kid, alg } = key
  if (use !== undefined && use !== 'sig') return ''
  if (Array.isArray(operations) && !operations.includes('verify')) return ''
  if (kty === 'oct') return 'is symmetric: anyone who can verify with it could also sign'
  const family = keyFamilies[`${kty} ${kty === 'RSA' ? '' : key.crv}`]
  if (family === undefined) return 'is of a type that is not supported'
  if (kid !== undefined && typeof kid !== 'string') return 'has a kid that is no text'
  const jwk = publicMembers(key, family)
  if (jwk === undefined) return 'lacks a member, or has one that is not base64url'
  if (kty === 'RSA' && (jwk.n?.length ?? 0) < minModulusLength) return 'is shorter than 2048 bits'
  const algorithms = allowedAlgorithms(family, alg)
  if (algorithms.length === 0) return 'names an algorithm that does not fit it'
  return { ...(kid !== undefined && { kid }), algorithms, jwk: { kty: String(kty), ...jwk } }
}

function publicMembers(key: Fields, { members: names }: KeyFamily): PublicJwk | undefined {
  const found: Record<string, string> = {}
  for (const name of names) {
    const value = key[name]
    if (typeof value !== 'string' || (name !== 'crv' && !base64Url.test(value))) return undefined
    found[name] = value
  }
  return found
}

/** The algorithm in `alg`, else all of the key type. `Ed25519` is the newer name of `EdDSA` (RFC 9864). */
function allowedAlgorithms({ algorithms }: KeyFamily, alg: unknown): readonly Algorithm[] {
  if (alg === undefined) return algorithms
  const named = alg === 'Ed25519' ? 'EdDSA' : alg
  return algorithms.filter((algorithm) => algorithm === named)
}

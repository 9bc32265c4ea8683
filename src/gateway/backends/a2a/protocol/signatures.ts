/**
 * Checks the signatures of agent cards: JWS (RFC 7515) over the card without `signatures`, as canonical JSON (RFC
 * 8785). Only configured keys count. A card may name a key set (`jku`), but a forged card would name its own, so
 * it is never fetched.
 */
import type * as Jose from 'jose'
import type { VerificationKey } from '../../../../engines/auth/jwt/key-set.ts'
import { canonicalBytes } from '../../../../ground/base/canonical.ts'
import { isObject } from '../../../../ground/base/json-object.ts'

/** `valid`: a configured key has signed the card. */
export type SignatureState = 'valid' | 'invalid' | 'unsigned' | 'unchecked'

type Card = Readonly<Record<string, unknown>>

/** Maximum number of signatures that are checked; further ones are ignored. */
const maxSignatures = 8
/** Maximum nesting of cards that can be verified. */
const maxDepth = 64

let library: Promise<typeof Jose> | undefined

/** Loads it with the first signature, so that proxies without signed cards do not need its memory. */
function load(): Promise<typeof Jose> {
  library ??= import('jose')
  return library
}

export class CardVerifier {
  readonly #keys: readonly VerificationKey[]

  constructor(keys: readonly VerificationKey[]) {
    this.#keys = keys
  }

  async check(card: Card): Promise<SignatureState> {
    const { signatures, ...signed } = card
    if (!Array.isArray(signatures) || signatures.length === 0) return 'unsigned'
    const payloads = payloadsOf(signed)
    const jose = await load()
    for (const signature of signatures.slice(0, maxSignatures)) {
      for (const payload of payloads) {
        if (await this.#isValid(jose, payload, signature)) return 'valid'
      }
    }
    return 'invalid'
  }

  async #isValid(jose: typeof Jose, payload: string, value: unknown): Promise<boolean> {
    if (!isObject(value)) return false
    const { protected: head, signature } = value
    if (typeof head !== 'string' || typeof signature !== 'string') return false
    try {
      await jose.flattenedVerify({ protected: head, signature, payload }, ({ kid, alg }) => {
        const key = this.#keys.find(
          (one) =>
            (kid === undefined || one.kid === kid) && one.algorithms.some((name) => name === alg),
        )
        if (key === undefined) throw new Error('no such key')
        return jose.importJWK({ ...key.jwk, kty: String(key.jwk.kty) }, alg)
      })
      return true
    } catch {
      return false
    }
  }
}

/**
 * The texts that a signer may have signed, in base64url. The specification leaves out members with default values, and SDKs leave
 * out all that are empty or, for booleans of a protocol buffer, false.
 */
function payloadsOf(signed: Card): readonly string[] {
  const variants = [signed, without(signed, isEmpty, 1), without(signed, isDefault, 1)]
  const texts = variants.map((one) => Buffer.from(canonicalBytes(one ?? {})).toString('base64url'))
  return [...new Set(texts)]
}

const isEmpty = (value: unknown): boolean => value === '' || value === null || value === undefined
const isDefault = (value: unknown): boolean => isEmpty(value) || value === false

/** Removes values, and lists and objects that become empty. Returns undefined if nothing is left. */
function without(value: unknown, isLeftOut: (one: unknown) => boolean, depth: number): unknown {
  if (isLeftOut(value)) return undefined
  if (typeof value !== 'object' || value === null) return value
  if (depth > maxDepth) throw new RangeError('the card is nested too deeply')
  if (Array.isArray(value)) {
    const kept = value.flatMap((one) => without(one, isLeftOut, depth + 1) ?? [])
    return kept.length === 0 ? undefined : kept
  }
  const kept = Object.entries(value).flatMap(([name, one]) => {
    const left = without(one, isLeftOut, depth + 1)
    return left === undefined ? [] : [[name, left] as const]
  })
  return kept.length === 0 ? undefined : Object.fromEntries(kept)
}

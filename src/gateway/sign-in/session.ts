/** What a session contains, and how it is sealed into cookies. */
import { deflateRawSync, inflateRawSync } from 'node:zlib'
import { isObject, type JsonObject } from '../../ground/base/json-object.ts'
import type { LearnedRecord } from '../../ground/exchange/learned.ts'
import type { Keyring } from './keyring.ts'

/** Times are in milliseconds since the epoch, by the clock of the gateway unless noted. */
export interface Session {
  /** A random name, by which a signed-out session is recognised. */
  readonly id: string
  /** When the user signed in. */
  readonly startedAt: number
  /** `iat` of the first ID token in seconds, by the clock of the provider. */
  readonly issuedAt: number
  /** When the tokens were obtained, and until when they are valid. */
  readonly renewedAt: number
  readonly expiresAt: number
  /** Claims of the ID token, and those of an earlier one that say how the user has signed in. */
  readonly claims: LearnedRecord
  /** The claims that an earlier ID token had; set after a renewal. */
  readonly kept?: LearnedRecord | undefined
  readonly accessToken: string
  /** The ID token, for the backend and as a hint at sign-out. */
  readonly idToken?: string | undefined
  readonly refreshToken?: string | undefined
}

/** Texts up to this length are not compressed. */
const minCompressed = 1_024
/** Maximum size of a session in bytes. Only the gateway can have sealed what is inflated. */
const maxSessionBytes = 262_144

/** Seals a session. The first byte of the sealed text says whether the rest is compressed. */
export function sealSession(session: Session, keyring: Keyring, context: string): string {
  const { idToken, claims, ...rest } = session
  // The ID token contains the claims.
  const text = Buffer.from(
    JSON.stringify(idToken === undefined ? { ...rest, claims } : { ...rest, idToken }),
  )
  const body = text.length > minCompressed ? deflateRawSync(text) : text
  const marker = Buffer.of(body === text ? 0 : 1)
  return keyring.seal(Buffer.concat([marker, body]), context)
}

/** Returns undefined if the text is not a session that was sealed for the same context. */
export function openSession(text: string, keyring: Keyring, context: string): Session | undefined {
  const plain = keyring.open(text, context)
  if (plain === undefined) return undefined
  try {
    const body = plain.subarray(1)
    const json = plain[0] === 1 ? inflateRawSync(body, { maxOutputLength: maxSessionBytes }) : body
    const session: unknown = JSON.parse(json.toString())
    if (!isObject(session)) return undefined
    const { idToken } = session
    const claims =
      typeof idToken === 'string' ? { ...keptIn(session), ...claimsOf(idToken) } : session.claims
    return { ...(session as unknown as Session), claims: claims as LearnedRecord }
  } catch {
    return undefined
  }
}

const keptIn = ({ kept }: JsonObject): JsonObject => (isObject(kept) ? kept : {})

/**
 * Claims about the sign-in itself. Providers may leave them out of the ID tokens of renewals (OpenID Connect Core 1.0,
 * 12.2), although they still hold. Other claims that are missing may have been taken from the user.
 */
const signInClaims = ['sid', 'acr', 'amr', 'auth_time']

/** The claims about the sign-in that a session has, for its renewal. */
export function signInClaimsOf({ claims }: Session): LearnedRecord {
  const found = signInClaims.filter((name) => claims[name] !== undefined)
  return Object.fromEntries(found.map((name) => [name, claims[name]]))
}

/** Reads the claims of a token whose signature was verified before it was sealed. */
function claimsOf(token: string): JsonObject {
  const [, payload = ''] = token.split('.')
  return JSON.parse(Buffer.from(payload, 'base64url').toString()) as JsonObject
}

/**
 * Reads signed tokens (RFC 7515 compact form, RFC 7519) without trusting them. Rejects everything
 * that two readers could understand differently: repeated member names, unused bits in base64url,
 * and critical extensions.
 */

import { isUtf8 } from 'node:buffer'

/** Reasons why a token is not valid; the response to the client contains them. */
export type TokenProblem =
  | 'the token is invalid or malformed'
  | 'the token header is malformed'
  | 'the token header does not specify a `kid`'
  | 'the token uses an unknown key'
  | 'the token uses an algorithm that its key does not allow'
  | 'the token is of an unknown issuer'
  | 'the token is for another audience'
  | 'the token has expired'
  | 'the token is not valid yet'
  | 'the token has no valid signature'
  | `the token has no claim ${string}`

export type Claims = Readonly<Record<string, unknown>>

export interface UnverifiedToken {
  readonly algorithm: string
  readonly kid: string | undefined
  readonly claims: Claims
  /** The bytes that the signature covers. */
  readonly signed: Buffer
  readonly signature: Buffer
}

/** Maximum length of a token in characters; longer tokens are rejected without being parsed. */
const maxLength = 16_384

const malformed: TokenProblem = 'the token is invalid or malformed'
const badHeader: TokenProblem = 'the token header is malformed'

export function readToken(text: string): UnverifiedToken | TokenProblem {
  if (text.length > maxLength) return malformed
  const first = text.indexOf('.')
  const second = text.indexOf('.', first + 1)
  if (first <= 0 || second <= first + 1 || text.indexOf('.', second + 1) >= 0) return malformed
  const header = headerOf(text.slice(0, first))
  if (header === undefined) return badHeader
  const claims = readObject(text.slice(first + 1, second))
  const signature = decode(text.slice(second + 1))
  if (claims === undefined || signature === undefined) return malformed
  const signed = Buffer.from(text.slice(0, second), 'latin1')
  return { ...header, claims, signed, signature }
}

type Header = Pick<UnverifiedToken, 'algorithm' | 'kid'>

/** Cache of parsed headers by their encoded text, because all tokens of a key have the same header. */
const headers = new Map<string, Header>()
const maxHeaders = 256
const maxHeaderLength = 512

function headerOf(text: string): Header | undefined {
  const known = headers.get(text)
  if (known !== undefined) return known
  const header = readHeader(text)
  if (header === undefined || text.length > maxHeaderLength) return header
  if (headers.size >= maxHeaders) headers.clear()
  headers.set(text, header)
  return header
}

function readHeader(text: string): Header | undefined {
  const header = readObject(text)
  if (header === undefined) return undefined
  const { alg, kid, crit, b64 } = header
  // No extension is understood, so none may be critical (RFC 7515 section 4.1.11; RFC 7797).
  if (crit !== undefined || b64 !== undefined) return undefined
  if (typeof alg !== 'string' || (kid !== undefined && typeof kid !== 'string')) return undefined
  return { algorithm: alg, kid }
}

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
/** Bits of the last character that must be zero, by the number of characters after the last group of four. */
const unusedBits = [0, 0, 0b1111, 0b11] as const

/** Decodes base64url; undefined if the text is not canonical (RFC 4648 sections 3.5 and 5). */
function decode(text: string): Buffer | undefined {
  const left = text.length % 4
  if (left === 1 || !/^[\w-]*$/.test(text)) return undefined
  const last = alphabet.indexOf(text.at(-1) ?? 'A')
  if ((last & (unusedBits[left] ?? 0)) !== 0) return undefined
  return Buffer.from(text, 'base64url')
}

function readObject(text: string): Claims | undefined {
  const bytes = decode(text)
  // `isUtf8` is used because a fatal TextDecoder would take as long as the rest of this function.
  if (bytes === undefined || !isUtf8(bytes)) return undefined
  try {
    const json = bytes.toString('utf8')
    const value: unknown = JSON.parse(json)
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
    return countNames(json) === countMembers(value) ? (value as Claims) : undefined
  } catch {
    return undefined
  }
}

const quote = 0x22
const backslash = 0x5c
const colon = 0x3a

/** Counts the member names in a JSON text: one for each colon outside of strings. */
function countNames(json: string): number {
  let names = 0
  let isText = false
  for (let at = 0; at < json.length; at++) {
    const code = json.charCodeAt(at)
    if (code === quote) isText = !isText
    else if (isText && code === backslash) at++
    else if (!isText && code === colon) names++
  }
  return names
}

/** Counts the members of a value, including nested ones; a name that the JSON text repeats counts once. */
function countMembers(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  const below = Object.values(value)
  let members = Array.isArray(value) ? 0 : below.length
  for (const member of below) members += countMembers(member)
  return members
}

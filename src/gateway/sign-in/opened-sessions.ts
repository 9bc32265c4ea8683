/**
 * Finds the session of a request. A value is decrypted once per worker; afterwards it is recognised by comparing the
 * bytes of the whole Cookie field with those of an earlier request, without making a string of them. Only valid sessions are stored, so that clients
 * without one cannot displace those of others.
 */
import { BoundedMap } from '../../ground/base/bounded-map.ts'
import { latin1Text } from '../../ground/base/latin1.ts'
import type { HeaderFields } from '../../ground/exchange/exchange.ts'
import { joinPieces, type RequestCookies, readCookies } from './cookies.ts'
import type { Keyring } from './keyring.ts'
import { openSession, type Session } from './session.ts'

/** The Cookie field of a request, as it was received; a text if it has several lines. */
export type CookieField = Buffer | string

export interface OpenedSession {
  /** The field that contains it. Its bytes are a copy. */
  readonly field: CookieField
  readonly session: Session
  /** The joined value of its cookies. */
  readonly value: string
  readonly cookies: RequestCookies
  /** When to renew the tokens, in milliseconds since the epoch. */
  renewAt: number
  /** The version of the list of signed-out sessions that this one was last compared with. */
  checkedAt: number
}

/** Maximum number of sessions in memory. */
const maxSessions = 1_024
/** Longer Cookie fields, in bytes, are read anew for each request. */
const maxFieldLength = 24_576
/** Number of characters by which a stored session is looked up. They are random, because they are encrypted. */
const tagLength = 20

/** Sessions are renewed when this part of their life is left, but not earlier than `maxAheadMs`. */
const aheadPart = 0.2
const maxAheadMs = 120_000

export class OpenedSessions {
  readonly #byTag = new BoundedMap<string, OpenedSession>(maxSessions)
  readonly #name: string
  readonly #assignment: Buffer
  readonly #context: string

  /** `name` is that of the first cookie, and `context` binds sessions to the policy. */
  constructor(name: string, context: string) {
    this.#name = name
    this.#assignment = Buffer.from(`${name}=`)
    this.#context = context
  }

  /** Returns undefined if the field contains no valid session. `keyring` is undefined until it has arrived. */
  find(field: CookieField, keyring: Keyring | undefined): OpenedSession | undefined {
    const bytes = typeof field === 'string' ? Buffer.from(field, 'latin1') : field
    const start = bytes.indexOf(this.#assignment)
    if (start < 0 || keyring === undefined) return undefined
    const tag = tagAt(bytes, start)
    const known = this.#byTag.get(tag)
    if (Buffer.isBuffer(known?.field) && bytes.equals(known.field)) return known
    return this.#open(bytes, tag, known, keyring)
  }

  #open(
    bytes: Buffer,
    tag: string,
    known: OpenedSession | undefined,
    keyring: Keyring,
  ): OpenedSession | undefined {
    const line = textOf(bytes)
    const cookies = readCookies(line)
    const value = joinPieces(cookies, this.#name)
    if (value === undefined) return undefined
    const isKnown = known?.value === value
    const session = isKnown ? known.session : openSession(value, keyring, this.#context)
    if (session === undefined) return undefined
    const { renewAt, checkedAt } = isKnown ? known : { renewAt: renewalOf(session), checkedAt: -1 }
    const isKept = bytes.length <= maxFieldLength
    const field = isKept ? Buffer.from(bytes) : line
    const opened = { field, session, value, cookies, renewAt, checkedAt }
    if (isKept) this.#byTag.set(tag, opened)
    return opened
  }

  /** Forgets everything, after the keys have changed. */
  clear(): void {
    this.#byTag.clear()
  }
}

const semicolon = 0x3b

/** The last characters of the first piece, which begins at `start`. */
function tagAt(bytes: Buffer, start: number): string {
  const found = bytes.indexOf(semicolon, start)
  const end = found < 0 ? bytes.length : found
  return latin1Text(bytes, Math.max(start, end - tagLength), end)
}

/** The Cookie fields of a request as one; HTTP/2 may send several (RFC 9113 8.2.3). */
export function cookieField(headers: HeaderFields): CookieField {
  const bytes = headers.bytesOf?.('cookie')
  if (bytes !== undefined) return bytes
  const lines = headers.lines('cookie')
  if (lines === undefined) return ''
  return typeof lines === 'string' ? lines : lines.join('; ')
}

export const textOf = (field: CookieField): string =>
  typeof field === 'string' ? field : latin1Text(field, 0, field.length)

/** Replicas choose different times, so that two of them rarely renew the same session at once. */
function renewalOf({ renewedAt, expiresAt }: Session): number {
  const ahead = Math.min(maxAheadMs, (expiresAt - renewedAt) * aheadPart)
  return expiresAt - ahead * (0.5 + Math.random() / 2)
}

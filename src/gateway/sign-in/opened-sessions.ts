/**
 * Finds the session of a request. A value is decrypted once per worker; afterwards it is recognised by comparing the
 * whole Cookie field with the one of an earlier request. Only valid sessions are stored, so that clients
 * without one cannot displace those of others.
 */
import { BoundedMap } from '../../ground/base/bounded-map.ts'
import type { HeaderFields } from '../../ground/exchange/exchange.ts'
import { joinPieces, type RequestCookies, readCookies } from './cookies.ts'
import type { Keyring } from './keyring.ts'
import { openSession, type Session } from './session.ts'

export interface OpenedSession {
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
/** Longer Cookie fields are read anew for each request. */
const maxLineLength = 24_576
/** Number of characters by which a stored session is looked up. They are random, because they are encrypted. */
const tagLength = 20

/** Sessions are renewed when this part of their life is left, but not earlier than `maxAheadMs`. */
const aheadPart = 0.2
const maxAheadMs = 120_000

interface Entry {
  readonly line: string
  readonly opened: OpenedSession
}

export class OpenedSessions {
  readonly #byTag = new BoundedMap<string, Entry>(maxSessions)
  readonly #name: string
  readonly #assignment: string
  readonly #context: string

  /** `name` is that of the first cookie, and `context` binds sessions to the policy. */
  constructor(name: string, context: string) {
    this.#name = name
    this.#assignment = `${name}=`
    this.#context = context
  }

  /** Returns undefined if the line contains no valid session. `keyring` is undefined until it has arrived. */
  find(line: string, keyring: Keyring | undefined): OpenedSession | undefined {
    const start = line.indexOf(this.#assignment)
    if (start < 0 || keyring === undefined) return undefined
    const tag = this.#tagAt(line, start)
    const entry = this.#byTag.get(tag)
    if (entry?.line === line) return entry.opened
    return this.#open(line, tag, entry?.opened, keyring)
  }

  /** The last characters of the first piece. */
  #tagAt(line: string, start: number): string {
    const semicolon = line.indexOf(';', start)
    const end = semicolon < 0 ? line.length : semicolon
    return line.slice(Math.max(start, end - tagLength), end)
  }

  #open(
    line: string,
    tag: string,
    known: OpenedSession | undefined,
    keyring: Keyring,
  ): OpenedSession | undefined {
    const cookies = readCookies(line)
    const value = joinPieces(cookies, this.#name)
    if (value === undefined) return undefined
    const isKnown = known?.value === value
    const session = isKnown ? known.session : openSession(value, keyring, this.#context)
    if (session === undefined) return undefined
    const { renewAt, checkedAt } = isKnown ? known : { renewAt: renewalOf(session), checkedAt: -1 }
    const opened = { session, value, cookies, renewAt, checkedAt }
    if (line.length <= maxLineLength) this.#byTag.set(tag, { line, opened })
    return opened
  }

  /** Forgets everything, after the keys have changed. */
  clear(): void {
    this.#byTag.clear()
  }
}

/** The Cookie fields of a request as one; HTTP/2 may send several (RFC 9113 8.2.3). */
export function cookieLine(headers: HeaderFields): string {
  const lines = headers.lines('cookie')
  if (lines === undefined) return ''
  return typeof lines === 'string' ? lines : lines.join('; ')
}

/** Replicas choose different times, so that two of them rarely renew the same session at once. */
function renewalOf({ renewedAt, expiresAt }: Session): number {
  const ahead = Math.min(maxAheadMs, (expiresAt - renewedAt) * aheadPart)
  return expiresAt - ahead * (0.5 + Math.random() / 2)
}

/**
 * Sessions and tokens that are refused although they have not expired: users have signed out, or an operator has
 * revoked them. The log has only digests of their names, so that it says nothing about users.
 */
import { sha256 } from '../base/digest.ts'

export interface EndedEntry {
  /** Digest of what has ended; see `endedId`. */
  readonly id: string
  /** What was issued until then has ended, in seconds since the epoch by the clock of the issuer. */
  readonly at: number
  /** When nothing of it can be valid any more, in milliseconds since the epoch. */
  readonly until: number
}

/** What a proxy reports: sessions of users at one client of an issuer. */
export interface EndedReport {
  readonly issuer: string
  readonly clientId: string
  readonly entries: readonly {
    readonly name: string
    readonly at: number
    readonly until: number
  }[]
}

/**
 * Returns whether a session or token with one of these ids has ended. `issuedAt` is when it was issued, in seconds since
 * 1970.
 */
export type HasEnded = (ids: readonly string[], issuedAt: number) => boolean

export type ReportEnded = (report: EndedReport) => void

/** Maximum number of entries. If there are more, the oldest one is dropped. */
const maxEnded = 65_536

/** Maximum number of entries of one event or message. */
export const maxEndedAtOnce = 1_000

/** Entries are kept at most this long, in milliseconds. */
export const maxEndedMs = 366 * 24 * 3_600_000

/** Name of all sessions and tokens of a user. */
export const nameOfSubject = (sub: string): string => `sub ${sub}`
/** Name of one token. */
export const nameOfToken = (jti: string): string => `jti ${jti}`

/** Digest of a name at an issuer, for one of its clients, or for all of them. */
export const endedId = (issuer: string, clientId: string | undefined, name: string): string =>
  Buffer.from(sha256(JSON.stringify([issuer, clientId ?? null, name])))
    .toString('base64url')
    .slice(0, 22)

/** A list of what has ended. */
export class EndedList {
  readonly #entries = new Map<string, EndedEntry>()
  /** Incremented by each change. */
  version = 0

  get size(): number {
    return this.#entries.size
  }

  all(): EndedEntry[] {
    return [...this.#entries.values()]
  }

  /** Adds entries, and drops those that are over. Returns those that were not known. */
  add(entries: readonly EndedEntry[], nowMs: number): readonly EndedEntry[] {
    const added = entries.filter((entry) => entry.until > nowMs && !this.#knows(entry))
    if (added.length === 0) return added
    for (const [id, { until }] of this.#entries) if (until <= nowMs) this.#entries.delete(id)
    for (const { id, at, until } of added) {
      const known = this.#entries.get(id)
      this.#entries.delete(id)
      const entry = {
        id,
        at: Math.max(at, known?.at ?? at),
        until: Math.max(until, known?.until ?? 0),
      }
      this.#entries.set(id, entry)
    }
    for (const id of this.#entries.keys()) {
      if (this.#entries.size <= maxEnded) break
      this.#entries.delete(id)
    }
    this.version++
    return added
  }

  #knows({ id, at, until }: EndedEntry): boolean {
    const known = this.#entries.get(id)
    return known !== undefined && known.at >= at && known.until >= until
  }

  /** Returns whether a session or token with one of these ids has ended that was issued at `issuedAt`, in seconds. */
  has(ids: Iterable<string>, issuedAt: number, nowMs: number): boolean {
    for (const id of ids) {
      const entry = this.#entries.get(id)
      if (entry !== undefined && entry.until > nowMs && issuedAt <= entry.at) return true
    }
    return false
  }

  clear(): void {
    this.#entries.clear()
    this.version++
  }
}

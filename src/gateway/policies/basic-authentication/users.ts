import { passwordChecker } from '../../../engines/auth/passwords/checker.ts'
import {
  htpasswdLines,
  type PasswordHashKind,
  passwordHashKind,
} from '../../../engines/auth/passwords/htpasswd.ts'
import { andThen } from '../../../ground/base/and-then.ts'
import type { Exchange } from '../../../ground/exchange/exchange.ts'

/** Users and their password hashes, read from texts in htpasswd format. */
export class Users {
  readonly #hashes = new Map<string, string>()
  /** A hash to check for unknown users, so that the time of a check does not reveal which users exist. */
  readonly #decoy: string

  /** If a user name occurs several times, the first password is used, as in Apache. */
  constructor(texts: Iterable<string>) {
    for (const text of texts) {
      for (const { user, hash } of htpasswdLines(text)) {
        if (user === undefined || passwordHashKind(hash) === undefined) continue
        if (!this.#hashes.has(user)) this.#hashes.set(user, hash)
      }
    }
    this.#decoy = slowest(this.#hashes.values())
  }

  /** Rejects with `overloaded` if too many password checks are queued. */
  check(user: string, password: string, exchange: Exchange): boolean | Promise<boolean> {
    const known = this.#hashes.get(user)
    const { address } = exchange.source
    const client = { address, user, isGone: () => exchange.isOver }
    const matches = passwordChecker.check(password, known ?? this.#decoy, client)
    return known === undefined ? falseAfter(matches) : matches
  }
}

const falseAfter = (matches: boolean | Promise<boolean>): boolean | Promise<boolean> =>
  andThen(matches, () => false)

/** Kinds of password hashes from the fastest to the slowest. */
const bySlowness: readonly PasswordHashKind[] = ['sha1', 'crypt', 'apr1', 'bcrypt']

function slowest(hashes: Iterable<string>): string {
  const rank = (hash: string) => {
    const kind = passwordHashKind(hash)
    return kind === undefined ? -1 : bySlowness.indexOf(kind)
  }
  return [...hashes].reduce((found, hash) => (rank(hash) > rank(found) ? hash : found), '')
}

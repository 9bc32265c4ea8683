/** Who may come in, from texts in htpasswd format. */
import { passwordChecker } from '../../auth/passwords/checker.ts'
import { htpasswdLines, type PasswordHashKind, passwordHashKind } from '../../base/htpasswd.ts'

export class Users {
  readonly #hashes = new Map<string, string>()
  /** Checked for names that nobody has, so that the time taken does not tell who exists. */
  readonly #decoy: string

  /** A name that is there twice has its first password, as in Apache. */
  constructor(texts: Iterable<string>) {
    for (const text of texts) {
      for (const { user, hash } of htpasswdLines(text)) {
        if (user === undefined || passwordHashKind(hash) === undefined) continue
        if (!this.#hashes.has(user)) this.#hashes.set(user, hash)
      }
    }
    this.#decoy = slowest(this.#hashes.values())
  }

  /** Rejects with `overloaded` where too many passwords wait to be checked. */
  check(user: string, password: string): boolean | Promise<boolean> {
    const known = this.#hashes.get(user)
    const fits = passwordChecker.check(password, known ?? this.#decoy)
    return known === undefined ? never(fits) : fits
  }
}

function never(fits: boolean | Promise<boolean>): boolean | Promise<boolean> {
  return fits instanceof Promise ? fits.then(() => false) : false
}

/** In the order of the time that they take. */
const bySlowness: readonly PasswordHashKind[] = ['sha1', 'crypt', 'apr1', 'bcrypt']

function slowest(hashes: Iterable<string>): string {
  const rank = (hash: string) => {
    const kind = passwordHashKind(hash)
    return kind === undefined ? -1 : bySlowness.indexOf(kind)
  }
  return [...hashes].reduce((found, hash) => (rank(hash) > rank(found) ? hash : found), '')
}

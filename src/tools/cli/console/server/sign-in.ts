/** People who sign in to a console with tokens of their own, in place of the token in the printed URL. */
import { createHash } from 'node:crypto'

/** `read` sees everything that the console shows. `operate` may also act, if actions are on. */
export type Role = 'read' | 'operate'

export interface Person {
  readonly name: string
  readonly roles: readonly Role[]
}

export interface SignIn {
  /** Where tokens come from. The page says so. */
  readonly method: 'kubernetes'
  /**
   * Returns undefined if the token is not valid. @throws if this cannot be decided now
   */
  review(token: string): Promise<Person | undefined>
}

/** How long a decision holds. After that, revoked tokens and roles have no effect. */
const validMs = 10_000
/** Maximum number of remembered decisions. */
const maxKnown = 1_000
const maxTokenLength = 16_384

interface Decision {
  readonly person: Promise<Person | undefined>
  readonly untilMs: number
}

/** Remembers decisions for a short time, so that the API server is not asked with every request. */
export class RememberedSignIn {
  readonly #signIn: SignIn
  /** By the digest of the token. */
  readonly #known = new Map<string, Decision>()

  constructor(signIn: SignIn) {
    this.#signIn = signIn
  }

  /** @throws if this cannot be decided now */
  async review(token: string): Promise<Person | undefined> {
    if (token === '' || token.length > maxTokenLength) return undefined
    const digest = createHash('sha256').update(token).digest('base64')
    const nowMs = performance.now()
    const known = this.#known.get(digest)
    if (known !== undefined && known.untilMs > nowMs) return known.person
    const person = this.#signIn.review(token)
    this.#known.delete(digest)
    this.#known.set(digest, { person, untilMs: nowMs + validMs })
    const [oldest] = this.#known.keys()
    if (this.#known.size > maxKnown && oldest !== undefined) this.#known.delete(oldest)
    person.catch(() => this.#known.delete(digest))
    return person
  }
}

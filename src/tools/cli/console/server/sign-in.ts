/** People who sign in to a console with tokens of their own, in place of the token in the printed URL. */
import { createHash } from 'node:crypto'

/** `read` sees everything that the console shows. `operate` may also act, if actions are on. */
export type Role = 'read' | 'operate'

export interface Person {
  readonly name: string
  readonly roles: readonly Role[]
}

/** A page of the sign-in sends the browser on, or says why it cannot. */
export type SignInStep =
  | { readonly location: string; readonly cookie?: string }
  | { readonly problem: string; readonly status: number }

export interface SignIn {
  /** Where tokens come from. The page says so. */
  readonly method: 'kubernetes' | 'oidc'
  /**
   * Returns undefined if the token is not valid. @throws if this cannot be decided now
   */
  review(token: string): Promise<Person | undefined>
  /** What a person without a role needs. */
  hint(role: Role): string
  /**
   * Pages of the sign-in, by path, for a browser that reaches the console at `origin`. `cookies` is the header of
   * the request. Not set if people type a token.
   */
  readonly pages?: Readonly<
    Record<string, (origin: string, query: URLSearchParams, cookies: string) => Promise<SignInStep>>
  >
  /** Ends the session of a token. */
  end?(token: string): void
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
export class RememberedSignIn implements SignIn {
  readonly method: SignIn['method']
  readonly #signIn: SignIn
  /** By the digest of the token. */
  readonly #known = new Map<string, Decision>()

  constructor(signIn: SignIn) {
    this.#signIn = signIn
    this.method = signIn.method
  }

  hint(role: Role): string {
    return this.#signIn.hint(role)
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

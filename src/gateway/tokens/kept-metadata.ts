/** Keeps the metadata of an authorization server, and fetches it again from time to time. */

/** How long metadata is used before it is fetched again. Until that succeeds, the old one stays in use. */
const freshMs = 300_000
/** Pause after a failure, so that requests of clients cannot cause many requests to the server. */
const failurePauseMs = 1_000

export class KeptMetadata<Metadata> {
  readonly #fetch: () => Promise<Metadata>
  #current: Metadata | undefined
  #freshUntil = 0
  #pending: Promise<Metadata> | undefined
  #failure: { readonly error: unknown; readonly until: number } | undefined

  /** Metadata that cannot be used must not be kept, so `fetch` rejects for it. */
  constructor(fetch: () => Promise<Metadata>) {
    this.#fetch = fetch
  }

  /** Resolves to the metadata. Rejects with the error of `fetch` if there was none yet. */
  async get(): Promise<Metadata> {
    const now = performance.now()
    if (this.#current !== undefined && now < this.#freshUntil) return this.#current
    if (this.#failure !== undefined && now < this.#failure.until) {
      if (this.#current !== undefined) return this.#current
      throw this.#failure.error
    }
    this.#pending ??= this.#renew().finally(() => {
      this.#pending = undefined
    })
    if (this.#current === undefined) return this.#pending
    this.#pending.catch(() => undefined)
    return this.#current
  }

  async #renew(): Promise<Metadata> {
    try {
      const found = await this.#fetch()
      this.#current = found
      this.#freshUntil = performance.now() + freshMs
      this.#failure = undefined
      return found
    } catch (error) {
      this.#failure = { error, until: performance.now() + failurePauseMs }
      throw error
    }
  }
}

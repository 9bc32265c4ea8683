/** Asks targets that were missing in lists until they respond, and then reports it. */

/** Delay before a target is asked. Every failure doubles it. */
const firstRetryMs = 1_000
const maxRetryMs = 30_000

interface Attempt {
  readonly target: string
  timer?: NodeJS.Timeout
  retryMs: number
}

export class UnavailableLists {
  readonly #attempts = new Map<string, Attempt>()
  /** Resolves to true if the target has responded to the method with a result. Never rejects. */
  readonly #ask: (target: string, method: string) => Promise<boolean>
  readonly #onFound: (target: string, method: string) => void

  constructor(
    ask: (target: string, method: string) => Promise<boolean>,
    onFound: (target: string, method: string) => void,
  ) {
    this.#ask = ask
    this.#onFound = onFound
  }

  /** Begins to ask the target, unless it is asked already. */
  add(target: string, method: string): void {
    const key = `${target} ${method}`
    if (this.#attempts.has(key)) return
    const attempt = { target, retryMs: firstRetryMs }
    this.#attempts.set(key, attempt)
    this.#later(attempt, key, method)
  }

  #later(attempt: Attempt, key: string, method: string): void {
    attempt.timer = setTimeout(async () => {
      const isFound = await this.#ask(attempt.target, method)
      if (this.#attempts.get(key) !== attempt) return
      if (!isFound) {
        this.#later(attempt, key, method)
        return
      }
      this.#attempts.delete(key)
      this.#onFound(attempt.target, method)
    }, attempt.retryMs)
    attempt.timer.unref()
    attempt.retryMs = Math.min(attempt.retryMs * 2, maxRetryMs)
  }

  /** Stops asking the target; all targets if omitted. */
  drop(target?: string): void {
    for (const [key, attempt] of [...this.#attempts]) {
      if (target !== undefined && attempt.target !== target) continue
      clearTimeout(attempt.timer)
      this.#attempts.delete(key)
    }
  }
}

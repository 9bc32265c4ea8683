/** Asks targets that were missing in lists until they respond, and then reports it. */
import { RetryTimer } from './retry-timer.ts'

interface Attempt {
  readonly target: string
  readonly timer: RetryTimer
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
  retry(target: string, method: string): void {
    const key = `${target} ${method}`
    if (this.#attempts.has(key)) return
    const attempt = { target, timer: new RetryTimer() }
    this.#attempts.set(key, attempt)
    const ask = async () => {
      const isFound = await this.#ask(target, method)
      if (this.#attempts.get(key) !== attempt) return
      if (!isFound) {
        attempt.timer.schedule(ask)
        return
      }
      this.#attempts.delete(key)
      this.#onFound(target, method)
    }
    attempt.timer.schedule(ask)
  }

  /** Stops asking the target; all targets if omitted. */
  stop(target?: string): void {
    for (const [key, attempt] of [...this.#attempts]) {
      if (target !== undefined && attempt.target !== target) continue
      attempt.timer.stop()
      this.#attempts.delete(key)
    }
  }
}

/**
 * Checks passwords for requests. A slow hash must neither delay other requests nor be computed for
 * every request of a client. A separate thread computes it once, and the result is cached under an
 * HMAC with a random key of this process.
 */
import { createHmac, randomBytes } from 'node:crypto'
import { Worker } from 'node:worker_threads'
import { passwordHashKind } from '../../base/htpasswd.ts'
import { GatewayError } from '../../errors/index.ts'
import { verifySha1 } from './sha1.ts'
import type { PasswordCheck, PasswordVerdict } from './thread.ts'

/** URL of the thread's module: next to this file if run from source, in the flat build folder if bundled. */
const entry = import.meta.url.endsWith('.ts')
  ? new URL('./thread.ts', import.meta.url)
  : new URL('./password-thread.js', import.meta.url)

/** Maximum size of each result set. Matches have their own set, so wrong guesses do not displace them. */
const maxKept = 4096
/** Maximum number of checks that wait for the thread. At 50 ms each, the last one waits half a minute. */
const maxWaiting = 512

class PasswordChecker {
  readonly #key = randomBytes(32)
  readonly #matches = new Set<string>()
  readonly #mismatches = new Set<string>()
  readonly #pending = new Map<string, Promise<boolean>>()
  readonly #waiters = new Map<number, PromiseWithResolvers<boolean>>()
  #thread: Worker | undefined
  #lastId = 0

  /**
   * Returns whether the password matches the hash. Rejects with `overloaded` if too many checks are
   * waiting, so that a flood of guesses does not fill the gateway's memory.
   */
  check(password: string, hash: string): boolean | Promise<boolean> {
    const kind = passwordHashKind(hash)
    if (kind === undefined) return false
    if (kind === 'sha1') return verifySha1(password, hash)
    const digest = createHmac('sha256', this.#key).update(`${hash}\0${password}`).digest('base64')
    if (this.#matches.has(digest)) return true
    if (this.#mismatches.has(digest)) return false
    return this.#pending.get(digest) ?? this.#ask(digest, password, hash)
  }

  #ask(digest: string, password: string, hash: string): Promise<boolean> {
    if (this.#waiters.size >= maxWaiting) {
      return Promise.reject(new GatewayError('overloaded', 'too many passwords to check'))
    }
    const id = ++this.#lastId
    const waiter = Promise.withResolvers<boolean>()
    this.#waiters.set(id, waiter)
    const answer = waiter.promise
      .then((fits) => {
        keep(fits ? this.#matches : this.#mismatches, digest)
        return fits
      })
      .finally(() => this.#pending.delete(digest))
    this.#pending.set(digest, answer)
    this.#start().postMessage({ id, password, hash } satisfies PasswordCheck)
    return answer
  }

  #start(): Worker {
    if (this.#thread !== undefined) return this.#thread
    const thread = new Worker(entry)
    thread.unref()
    thread.on('message', ({ id, fits }: PasswordVerdict) => {
      this.#waiters.get(id)?.resolve(fits)
      this.#waiters.delete(id)
    })
    thread.on('error', () => this.#died(thread))
    thread.on('exit', () => this.#died(thread))
    this.#thread = thread
    return thread
  }

  /** Called when the thread has ended. The checks in progress fail; the next check starts a new thread. */
  #died(thread: Worker): void {
    if (this.#thread !== thread) return
    this.#thread = undefined
    const waiters = [...this.#waiters.values()]
    this.#waiters.clear()
    for (const { reject } of waiters) {
      reject(new GatewayError('bug', 'the password thread has died'))
    }
  }
}

function keep(set: Set<string>, digest: string): void {
  const [oldest] = set
  if (set.size >= maxKept && oldest !== undefined) set.delete(oldest)
  set.add(digest)
}

/** The only password checker; all policies share it. */
export const passwordChecker = new PasswordChecker()

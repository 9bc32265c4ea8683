/**
 * Checks passwords for requests. A hash that is made to be slow must neither hold up other requests
 * nor be computed for every request of a client: it is computed in a thread of its own, once, and
 * the answer is kept under a digest that nobody without this process's key can compute.
 */
import { createHmac, randomBytes } from 'node:crypto'
import { Worker } from 'node:worker_threads'
import { passwordHashKind } from '../../base/htpasswd.ts'
import { GatewayError } from '../../errors/index.ts'
import { verifySha1 } from './sha1.ts'
import type { PasswordQuestion, PasswordVerdict } from './thread.ts'

/** Beside this file when run from source, one file of the flat build folder when bundled. */
const entry = import.meta.url.endsWith('.ts')
  ? new URL('./thread.ts', import.meta.url)
  : new URL('./password-thread.js', import.meta.url)

/** Answers that are kept; the oldest goes first. Of either kind, so that guessing drops no good one. */
const maxKept = 4096
/** Checks that may wait for the thread; at 50 ms each, the last one waits half a minute. */
const maxWaiting = 512

interface Waiter {
  resolve(fits: boolean): void
  reject(error: unknown): void
}

class PasswordChecker {
  readonly #key = randomBytes(32)
  readonly #fitting = new Set<string>()
  readonly #failing = new Set<string>()
  readonly #underWay = new Map<string, Promise<boolean>>()
  readonly #waiters = new Map<number, Waiter>()
  #thread: Worker | undefined
  #lastId = 0

  /**
   * Does the password fit the hash? Rejects with `overloaded` where too many checks wait already:
   * then a flood of guesses costs its senders' requests, and not the memory of the gateway.
   */
  check(password: string, hash: string): boolean | Promise<boolean> {
    const kind = passwordHashKind(hash)
    if (kind === undefined) return false
    if (kind === 'sha1') return verifySha1(password, hash)
    const digest = createHmac('sha256', this.#key).update(`${hash}\0${password}`).digest('base64')
    if (this.#fitting.has(digest)) return true
    if (this.#failing.has(digest)) return false
    return this.#underWay.get(digest) ?? this.#ask(digest, password, hash)
  }

  #ask(digest: string, password: string, hash: string): Promise<boolean> {
    if (this.#waiters.size >= maxWaiting) {
      return Promise.reject(new GatewayError('overloaded', 'too many passwords to check'))
    }
    const id = ++this.#lastId
    const asked = new Promise<boolean>((resolve, reject) => {
      this.#waiters.set(id, { resolve, reject })
    })
    const answer = asked
      .then((fits) => {
        keep(fits ? this.#fitting : this.#failing, digest)
        return fits
      })
      .finally(() => this.#underWay.delete(digest))
    this.#underWay.set(digest, answer)
    this.#start().postMessage({ id, password, hash } satisfies PasswordQuestion)
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

  /** The next check starts another thread; those under way are not known to fit. */
  #died(thread: Worker): void {
    if (this.#thread !== thread) return
    this.#thread = undefined
    const waiters = [...this.#waiters.values()]
    this.#waiters.clear()
    for (const { reject } of waiters)
      reject(new GatewayError('bug', 'the password thread has died'))
  }
}

function keep(set: Set<string>, digest: string): void {
  const [oldest] = set
  if (set.size >= maxKept && oldest !== undefined) set.delete(oldest)
  set.add(digest)
}

/** One for all policies of a thread. */
export const passwordChecker = new PasswordChecker()

/**
 * Checks passwords for requests. A slow hash must neither delay other requests nor be computed for
 * every request of a client. Separate threads compute it once, and the result is cached under an HMAC
 * with a random key of this process.
 */
import { createHmac, randomBytes } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { Worker } from 'node:worker_threads'
import { GatewayError } from '../../../ground/errors/index.ts'
import { CheckQueue, type PasswordClient, type WaitingCheck } from './check-queue.ts'
import { passwordHashKind } from './htpasswd.ts'
import { verifySha1 } from './sha1.ts'
import type { PasswordCheck, PasswordVerdict } from './thread.ts'

/** URL of the thread's module: next to this file if run from source, in the flat build folder if bundled. */
const entry = import.meta.url.endsWith('.ts')
  ? new URL('./thread.ts', import.meta.url)
  : new URL('./password-thread.js', import.meta.url)

/** Maximum size of each result set. Matches have their own set, so wrong guesses do not displace them. */
const maxKept = 4096
/** Maximum number of checks that wait for a thread, of all clients and of one address. */
const maxWaiting = 512
const maxWaitingOfAddress = 128
/** Maximum time that a check waits for a thread. */
const maxWaitMs = 5_000
const sweepEveryMs = 250
/** Longer passwords match nothing, because the time of crypt(3) grows with the length. */
const maxPasswordBytes = 1_024
const maxThreads = Math.max(1, Math.min(2, availableParallelism()))

/** A thread, and the check that it computes. */
interface Slot {
  readonly thread: Worker
  check: WaitingCheck | undefined
}

class PasswordChecker {
  readonly #key = randomBytes(32)
  readonly #matches = new Set<string>()
  readonly #mismatches = new Set<string>()
  /** Checks that wait or are computed, by digest. */
  readonly #pending = new Map<
    string,
    { readonly check: WaitingCheck; readonly result: Promise<boolean> }
  >()
  readonly #queue = new CheckQueue()
  readonly #slots: Slot[] = []
  #sweeps: NodeJS.Timeout | undefined

  /**
   * Returns whether the password matches the hash. Rejects with `overloaded` if too many checks wait, or if
   * the check waits for too long. A check whose clients are all gone is not computed.
   */
  check(password: string, hash: string, client: PasswordClient): boolean | Promise<boolean> {
    const kind = passwordHashKind(hash)
    if (kind === undefined || Buffer.byteLength(password) > maxPasswordBytes) return false
    if (kind === 'sha1') return verifySha1(password, hash)
    const digest = createHmac('sha256', this.#key).update(`${hash}\0${password}`).digest('base64')
    if (this.#matches.has(digest)) return true
    if (this.#mismatches.has(digest)) return false
    const pending = this.#pending.get(digest)
    if (pending === undefined) return this.#ask(digest, password, hash, client)
    pending.check.clients.push(client)
    return pending.result
  }

  #ask(digest: string, password: string, hash: string, client: PasswordClient): Promise<boolean> {
    if (!this.#hasRoom(client)) return Promise.reject(tooMany())
    const { promise, resolve, reject } = Promise.withResolvers<boolean>()
    const since = performance.now()
    const check = { digest, password, hash, clients: [client], since, resolve, reject }
    const result = promise
      .then((fits) => {
        keep(fits ? this.#matches : this.#mismatches, digest)
        return fits
      })
      .finally(() => this.#pending.delete(digest))
    this.#pending.set(digest, { check, result })
    this.#queue.add(check, client)
    this.#next()
    return result
  }

  #hasRoom({ address }: PasswordClient): boolean {
    if (this.#isFull(address)) this.#sweep()
    return !this.#isFull(address)
  }

  #isFull(address: string): boolean {
    const { size } = this.#queue
    return size >= maxWaiting || this.#queue.sizeOf(address) >= maxWaitingOfAddress
  }

  /** Gives waiting checks to idle threads. */
  #next(): void {
    while (this.#queue.size > 0) {
      const slot = this.#slots.find(({ check }) => check === undefined) ?? this.#start()
      if (slot === undefined) break
      const check = this.#queue.take()
      if (check === undefined) break
      if (isAbandoned(check)) check.reject(gone())
      else {
        slot.check = check
        const { password, hash } = check
        slot.thread.postMessage({ id: 0, password, hash } satisfies PasswordCheck)
      }
    }
    if (this.#queue.size > 0)
      this.#sweeps ??= setInterval(() => this.#sweep(), sweepEveryMs).unref()
    else {
      clearInterval(this.#sweeps)
      this.#sweeps = undefined
    }
  }

  /** Drops checks whose clients are gone, and refuses checks that have waited too long. */
  #sweep(): void {
    for (const check of this.#queue.remove(isAbandoned)) check.reject(gone())
    const before = performance.now() - maxWaitMs
    for (const check of this.#queue.remove(({ since }) => since < before)) check.reject(tooMany())
  }

  /** Starts a thread; returns undefined if all threads are running. */
  #start(): Slot | undefined {
    if (this.#slots.length >= maxThreads) return undefined
    const thread = new Worker(entry)
    const slot: Slot = { thread, check: undefined }
    thread.unref()
    thread.on('message', ({ fits }: PasswordVerdict) => {
      const { check } = slot
      slot.check = undefined
      check?.resolve(fits)
      this.#next()
    })
    thread.on('error', () => this.#died(slot))
    thread.on('exit', () => this.#died(slot))
    this.#slots.push(slot)
    return slot
  }

  /** Called when a thread has ended. Its check fails; the next one starts a new thread. */
  #died(slot: Slot): void {
    const at = this.#slots.indexOf(slot)
    if (at < 0) return
    this.#slots.splice(at, 1)
    slot.check?.reject(new GatewayError('bug', 'the password thread has died'))
    this.#next()
  }
}

const isAbandoned = ({ clients }: WaitingCheck): boolean => clients.every(({ isGone }) => isGone())
const tooMany = () => new GatewayError('overloaded', 'too many passwords to check')
const gone = () => new GatewayError('overloaded', 'the client is gone')

function keep(set: Set<string>, digest: string): void {
  const [oldest] = set
  if (set.size >= maxKept && oldest !== undefined) set.delete(oldest)
  set.add(digest)
}

/** The only password checker; all policies share it. */
export const passwordChecker = new PasswordChecker()

/**
 * Renews the tokens of sessions before they expire. A session is renewed once, however many requests, tabs and workers
 * ask for it at the same time: providers that rotate refresh tokens would take a second use for theft.
 * The result is kept, because a browser may still send the old cookie.
 */

import { BoundedMap } from '../../ground/base/bounded-map.ts'
import { hexDigest } from '../../ground/base/digest.ts'
import type { RateBucket } from '../../ground/exchange/rate-limits.ts'
import { receiveMessages, sendMessage, type WorkerMessage } from './worker-channel.ts'

/** The sealed session that replaces an old one; `ended` if the provider refuses; `failed` if it cannot decide now. */
export type Renewal = { readonly value: string } | 'ended' | 'failed'

/** Maximum number of results that are kept. */
const maxResults = 2_048
/** How long a request whose tokens have expired waits for another worker. */
const waitMs = 10_000
/** Pause after a failure. */
const pauseMs = 2_000

interface Waiting {
  readonly promise: Promise<void>
  resolve(): void
}

const all = new Map<string, Renewals>()

/**
 * Returns the renewals of a policy. They are kept as long as the process runs, because an edited policy must not use
 * a refresh token again.
 */
export function renewalsOf(context: string, turns: RateBucket): Renewals {
  let found = all.get(context)
  if (found === undefined) {
    found = new Renewals(context, turns)
    all.set(context, found)
  }
  return found
}

export class Renewals {
  readonly #topic: string
  /** Gives one unit per key and minute to all workers of the proxy: the right to renew. */
  readonly #turns: RateBucket
  readonly #results = new BoundedMap<string, Renewal>(maxResults)
  readonly #running = new Map<string, Promise<Renewal>>()
  readonly #failures = new BoundedMap<string, { readonly count: number; readonly at: number }>(
    maxResults,
  )
  readonly #waiting = new Map<string, Waiting>()

  constructor(context: string, turns: RateBucket) {
    this.#topic = JSON.stringify(['renewals', context])
    this.#turns = turns
    receiveMessages(this.#topic, (message) => this.#receive(message))
  }

  /**
   * Returns the replacement of a session; undefined if another worker is about to renew it and the caller can go on with the
   * old one. `isExpired`: it cannot. `renew` calls the provider, and must not reject.
   */
  replace(
    value: string,
    isExpired: boolean,
    renew: () => Promise<Renewal>,
  ): Renewal | undefined | Promise<Renewal | undefined> {
    const key = hexDigest('sha256', value)
    const known = this.#results.get(key) ?? this.#running.get(key)
    if (known !== undefined) return known
    const failure = this.#failures.get(key)
    if (failure !== undefined && performance.now() < failure.at + pauseMs) return 'failed'
    if (this.#takeTurn(key)) return this.#run(key, renew)
    return isExpired ? this.#wait(key) : undefined
  }

  /** Each failure opens another turn. If the worker that has it dies, the next turn begins after a minute. */
  #takeTurn(key: string): boolean {
    const turn = `${key} ${this.#failures.get(key)?.count ?? 0}`
    return this.#turns.take(1, turn) || this.#turns.isTableFull
  }

  #run(key: string, renew: () => Promise<Renewal>): Promise<Renewal> {
    const running = renew().then((result) => {
      this.#running.delete(key)
      const topic = this.#topic
      if (result === 'failed') {
        this.#noteFailure(key)
        sendMessage({ type: 'failed', topic, key })
      } else {
        this.#results.set(key, result)
        const value = result === 'ended' ? undefined : result.value
        sendMessage({ type: 'renewed', topic, key, value })
      }
      return result
    })
    this.#running.set(key, running)
    return running
  }

  /** Resolves once another worker has renewed the session, or cannot. */
  async #wait(key: string): Promise<Renewal> {
    let waiting = this.#waiting.get(key)
    if (waiting === undefined) {
      const { promise, resolve } = Promise.withResolvers<void>()
      const timer = setTimeout(resolve, waitMs)
      waiting = { promise, resolve }
      this.#waiting.set(key, waiting)
      promise.finally(() => {
        clearTimeout(timer)
        this.#waiting.delete(key)
      })
    }
    await waiting.promise
    return this.#results.get(key) ?? 'failed'
  }

  #receive(message: WorkerMessage): void {
    if (message.type === 'renewed') {
      const { value } = message
      this.#results.set(message.key, value === undefined ? 'ended' : { value })
    } else if (message.type === 'failed') this.#noteFailure(message.key)
    else return
    this.#waiting.get(message.key)?.resolve()
  }

  #noteFailure(key: string): void {
    const count = (this.#failures.get(key)?.count ?? 0) + 1
    this.#failures.set(key, { count, at: performance.now() })
  }
}

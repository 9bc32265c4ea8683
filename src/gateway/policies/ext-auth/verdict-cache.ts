import { hash } from 'node:crypto'
import {
  CelDuration,
  CelTimestamp,
  type CelValue,
  isCelError,
  writeJson,
} from '../../../engines/cel/index.ts'
import { parseDurationMs } from '../../../ground/base/duration.ts'
import type { Exchange } from '../../../ground/exchange/exchange.ts'
import { principalDigest } from '../../principal/principal.ts'
import { type BodyNeeds, Expression } from '../../variables/index.ts'
import type { CallerReader } from './caller.ts'
import type { CacheConfig } from './config.ts'

/** Maximum size of the answers of one policy in memory, and of one answer, in bytes. */
const maxBytes = 16 * 1024 * 1024
const maxAnswerBytes = 64 * 1024

/** Values that identify the caller. If a key reads one of them, callers with equal keys share answers. */
const callerPaths = [
  ...['jwt', 'apiKey', 'basicAuth', 'identity'],
  ...['request.headers.authorization', 'request.headers.cookie'],
]

/** The clocks of a cache. */
export interface Clock {
  /** Milliseconds of a monotonic clock. */
  readonly monotonicMs: () => number
  /** Milliseconds since 1970. */
  readonly epochMs: () => number
}

interface Entry<Answer> {
  readonly answer: Answer
  readonly bytes: number
  /** Time of the monotonic clock in milliseconds. */
  readonly until: number
}

/** Answers of an authorization service that apply to later requests with the same key. */
export class VerdictCache<Answer> implements BodyNeeds {
  readonly request: boolean
  readonly response = false
  readonly #key: readonly Expression[]
  readonly #namesCaller: boolean
  readonly #ttlMs: number | undefined
  readonly #ttl: Expression | undefined
  readonly #maxEntries: number
  readonly #clock: Clock
  /** The least recently used entry is the first. */
  readonly #entries = new Map<string, Entry<Answer>>()
  #bytes = 0

  constructor({ key, ttl, maxEntries }: CacheConfig, clock: Clock) {
    this.#clock = clock
    this.#key = key.map((source) => new Expression(source))
    this.#namesCaller = this.#key.some((one) => callerPaths.some((path) => one.mentions(path)))
    this.#ttlMs = parseDurationMs(ttl)
    this.#ttl = this.#ttlMs === undefined ? new Expression(ttl) : undefined
    this.#maxEntries = maxEntries
    this.request = [...this.#key, this.#ttl].some((one) => one?.request === true)
  }

  /**
   * Returns the key of a request; undefined if an expression fails. Unless the expressions name the caller, the key has
   * the verified principal and all credentials that the service receives.
   */
  keyOf(exchange: Exchange, caller: CallerReader): string | undefined {
    const parts: string[] = []
    for (const expression of this.#key) {
      const value = expression.evaluate(exchange)
      const json = isCelError(value) ? value : writeJson(value as CelValue)
      if (isCelError(json)) return undefined
      parts.push(json)
    }
    const owner = this.#namesCaller
      ? undefined
      : [principalDigest(exchange) ?? null, caller.read(exchange, undefined).credentials]
    return hash('sha256', JSON.stringify([parts, owner]), 'base64')
  }

  get(key: string): Answer | undefined {
    const found = this.#entries.get(key)
    if (found === undefined) return undefined
    this.#remove(key, found)
    if (found.until <= this.#clock.monotonicMs()) return undefined
    this.#add(key, found)
    return found.answer
  }

  /** Stores an answer, unless its lifetime is 0. `answered` is the exchange for the expression of the lifetime. */
  put(key: string, answer: Answer, bytes: number, answered: Exchange): void {
    const ms = this.#ttlMs ?? this.#lifetimeMs(answered)
    const isStorable = ms > 0 && bytes <= maxAnswerBytes && this.#maxEntries > 0
    const before = this.#entries.get(key)
    if (before !== undefined) this.#remove(key, before)
    if (isStorable) this.#add(key, { answer, bytes, until: this.#clock.monotonicMs() + ms })
  }

  #add(key: string, entry: Entry<Answer>): void {
    this.#entries.set(key, entry)
    this.#bytes += entry.bytes
    for (const [oldest, old] of this.#entries) {
      if (this.#entries.size <= this.#maxEntries && this.#bytes <= maxBytes) return
      this.#remove(oldest, old)
    }
  }

  #remove(key: string, { bytes }: Entry<Answer>): void {
    if (this.#entries.delete(key)) this.#bytes -= bytes
  }

  /** Returns the milliseconds that the expression allows; 0 if it gives neither a duration nor a timestamp. */
  #lifetimeMs(answered: Exchange): number {
    const value = this.#ttl?.evaluate(answered)
    if (value instanceof CelDuration) return Number(value.nanoseconds) / 1e6
    return value instanceof CelTimestamp ? value.milliseconds - this.#clock.epochMs() : 0
  }
}

/**
 * Signs of life of replicas that share a log: each keeps an entry of its own in a bucket where
 * entries do not last, and whoever may write the log looks for the entries of replicas that the log
 * names. One that has none for a while is gone, and with it the connections that it had.
 */
import { NatsRecord } from '../log/nats-record.ts'

export interface PresenceOptions {
  /** As of the log. */
  readonly servers: string
  /** Name of this run of this replica; never used twice. */
  readonly identity: string
  /** How long a replica counts as there without a sign of life, in milliseconds. */
  readonly durationMs: number
  /** Replicas to look for now; none where another one looks. */
  readonly wanted: () => Iterable<string>
  /** A replica is gone: told again and again while it is wanted. */
  readonly onGone: (identity: string) => void
}

const bucket = 'SLUICE_PRESENCE'
/** Signs of life in the time for which one lasts. */
const signs = 3

export class Presence {
  readonly #options: PresenceOptions
  readonly #record: NatsRecord
  /** When a replica was missed first, in milliseconds of `performance.now()`. */
  readonly #missed = new Map<string, number>()
  #next: NodeJS.Timeout | undefined
  #turn: Promise<void> | undefined
  #isClosed = false

  constructor(options: PresenceOptions) {
    this.#options = options
    const { servers, identity, durationMs } = options
    this.#record = new NatsRecord({ servers, bucket, key: keyOf(identity), lifeMs: durationMs })
  }

  start(): void {
    this.#turn = this.#tick().finally(() => {
      if (this.#isClosed) return
      this.#next = setTimeout(() => this.start(), this.#options.durationMs / signs)
      this.#next.unref()
    })
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#next)
    await this.#turn
    await this.#record.close()
  }

  /** Whether the server answers is told by others: the log and the lease ask it, too. */
  async #tick(): Promise<void> {
    const { identity, durationMs, wanted, onGone } = this.#options
    const timeoutMs = durationMs / signs
    try {
      await this.#record.put(new Date().toISOString(), timeoutMs)
      const others = new Set(wanted())
      others.delete(identity)
      for (const known of this.#missed.keys()) if (!others.has(known)) this.#missed.delete(known)
      for (const other of others) {
        if ((await this.#record.read(timeoutMs, keyOf(other))) !== undefined) {
          this.#missed.delete(other)
        } else if (this.#isMissedFor(other) >= durationMs) onGone(other)
      }
    } catch {
      // A server that does not answer, or has lost its memory, is no proof that anybody is gone.
      this.#missed.clear()
    }
  }

  #isMissedFor(identity: string): number {
    const since = this.#missed.get(identity) ?? performance.now()
    this.#missed.set(identity, since)
    return performance.now() - since
  }
}

/** Names of hosts may have dots, which separate tokens of subjects. */
const keyOf = (identity: string) => Buffer.from(identity).toString('base64url')

/**
 * Heartbeats of replicas that share a log: each renews an entry of its own in a bucket whose entries
 * expire, and the replica that writes the log looks for the entries of the replicas that it watches.
 * A replica without an entry for a while is gone, and with it the connections that it had.
 */
import { NatsRecord } from '../log/nats-record.ts'

export interface HeartbeatOptions {
  /** As of the log. */
  readonly servers: string
  /** Name of this run of this replica; never used twice. */
  readonly identity: string
  /** How long a replica counts as alive without a heartbeat, in milliseconds. */
  readonly durationMs: number
  /** Replicas to watch now; none while another replica watches. */
  readonly watched: () => Iterable<string>
  /** A replica is gone; called again and again while it is watched. */
  readonly onGone: (identity: string) => void
}

const bucket = 'SLUICE_PRESENCE'
/** Heartbeats in the time for which one lasts. */
const beatsPerLife = 3

export class Heartbeat {
  readonly #options: HeartbeatOptions
  readonly #record: NatsRecord
  /** When a replica was missed first, in milliseconds of `performance.now()`. */
  readonly #missed = new Map<string, number>()
  #next: NodeJS.Timeout | undefined
  #turn: Promise<void> | undefined
  #isClosed = false

  constructor(options: HeartbeatOptions) {
    this.#options = options
    const { servers, identity, durationMs } = options
    this.#record = new NatsRecord({ servers, bucket, key: keyOf(identity), lifeMs: durationMs })
  }

  start(): void {
    this.#turn = this.#tick().finally(() => {
      if (this.#isClosed) return
      this.#next = setTimeout(() => this.start(), this.#options.durationMs / beatsPerLife)
      this.#next.unref()
    })
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#next)
    await this.#turn
    await this.#record.close()
  }

  /** The log and the lease report a server that does not answer. */
  async #tick(): Promise<void> {
    const { identity, durationMs, watched, onGone } = this.#options
    const timeoutMs = durationMs / beatsPerLife
    try {
      await this.#record.put(new Date().toISOString(), timeoutMs)
      const others = new Set(watched())
      others.delete(identity)
      for (const known of this.#missed.keys()) if (!others.has(known)) this.#missed.delete(known)
      for (const other of others) {
        if ((await this.#record.read(timeoutMs, keyOf(other))) !== undefined) {
          this.#missed.delete(other)
        } else if (this.#isMissedFor(other) >= durationMs) onGone(other)
      }
    } catch {
      // A server that does not answer, or has lost its entries, is no proof that a replica is gone.
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

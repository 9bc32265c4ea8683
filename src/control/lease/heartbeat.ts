/**
 * Heartbeats of replicas that share a log. Each replica renews its own entry in a NATS bucket whose
 * entries expire. The replica that writes the log checks the entries of the replicas that it watches.
 * A replica whose entry stays missing is gone, and so are its connections.
 */
import { NatsRecord } from '../log/nats-record.ts'

/** The entries of all replicas, of which a replica writes its own. */
export type HeartbeatEntries = Pick<NatsRecord, 'put' | 'read' | 'close'>

export interface HeartbeatOptions {
  /** Opens the entries; `key` is that of the own one. Entries expire after `lifeMs`. */
  readonly openEntries: (key: string, lifeMs: number) => HeartbeatEntries
  /** Name of this run of this replica; never used twice. */
  readonly identity: string
  /** How long a replica counts as alive without a heartbeat, in milliseconds. */
  readonly durationMs: number
  /** Returns the identities of the replicas to watch; none while another replica watches. */
  readonly watched: () => Iterable<string>
  /** Called when a replica is gone, and again at each check while it is watched. */
  readonly onGone: (identity: string) => void
}

const bucket = 'SLUICE_PRESENCE'

/** Keeps the entries on the NATS servers of the log. */
export const natsHeartbeats =
  (servers: string): HeartbeatOptions['openEntries'] =>
  (key, lifeMs) =>
    new NatsRecord({ servers, bucket, key, lifeMs })

/** Number of heartbeats per `durationMs`. */
const beatsPerDuration = 3

export class Heartbeat {
  readonly #options: HeartbeatOptions
  readonly #record: HeartbeatEntries
  /** When the entry of a replica was first found missing, by `performance.now()`. */
  readonly #missingSince = new Map<string, number>()
  #next: NodeJS.Timeout | undefined
  #turn: Promise<void> | undefined
  #isClosed = false

  constructor(options: HeartbeatOptions) {
    this.#options = options
    const { openEntries, identity, durationMs } = options
    this.#record = openEntries(keyOf(identity), durationMs)
  }

  start(): void {
    this.#turn = this.#tick().finally(() => {
      if (this.#isClosed) return
      this.#next = setTimeout(() => this.start(), this.#options.durationMs / beatsPerDuration)
      this.#next.unref()
    })
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#next)
    await this.#turn
    await this.#record.close()
  }

  /** Sends a heartbeat and checks the watched replicas. The log and the lease report server errors. */
  async #tick(): Promise<void> {
    const { identity, durationMs, watched, onGone } = this.#options
    const timeoutMs = durationMs / beatsPerDuration
    try {
      await this.#record.put(new Date().toISOString(), timeoutMs)
      const others = new Set(watched())
      others.delete(identity)
      for (const known of this.#missingSince.keys())
        if (!others.has(known)) this.#missingSince.delete(known)
      for (const other of others) {
        if ((await this.#record.read(timeoutMs, keyOf(other))) !== undefined) {
          this.#missingSince.delete(other)
        } else if (this.#missingForMs(other) >= durationMs) onGone(other)
      }
    } catch {
      // A server that does not answer, or that has lost its entries, does not prove that a replica is
      // gone.
      this.#missingSince.clear()
    }
  }

  #missingForMs(identity: string): number {
    const since = this.#missingSince.get(identity) ?? performance.now()
    this.#missingSince.set(identity, since)
    return performance.now() - since
  }
}

/** Encodes an identity, since host names may contain dots, which separate the tokens of NATS subjects. */
const keyOf = (identity: string) => Buffer.from(identity).toString('base64url')

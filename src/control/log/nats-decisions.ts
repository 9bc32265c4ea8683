/** The stream of decision records on a NATS server. Each message is a block as it is stored in a file. */
import type { JetStreamClient } from '@nats-io/jetstream'
import type { NatsConnection } from '@nats-io/transport-node'

/** Name of the stream. */
export const decisionStream = 'SLUICE_DECISIONS'
export const decisionSubject = 'sluice-decisions'
const nanosPerMs = 1_000_000
const maxAgeMs = 7 * 24 * 3_600_000
const maxStreamBytes = 1024 ** 3
/** Maximum number of blocks that wait for the server; further ones are lost. */
const maxWaiting = 16
const responseTimeoutMs = 5_000
/** Time after which a failed connection is tried again. */
const retryMs = 5_000

interface PublisherOptions {
  readonly servers: string
  /** Called when publishing begins to fail, with the reason. */
  onProblem(text: string): void
}

export class DecisionPublisher {
  readonly #options: PublisherOptions
  #opened: Promise<{ connection: NatsConnection; client: JetStreamClient }> | undefined
  #retryAt = 0
  #waiting = 0
  #isFailing = false
  /** Number of blocks that the server did not take. */
  #lostBlocks = 0

  constructor(options: PublisherOptions) {
    this.#options = options
  }

  /** Publishes a block in the background. It is lost if the server is slow or cannot be reached. */
  publish(block: Uint8Array): void {
    const isPaused = this.#opened === undefined && Date.now() < this.#retryAt
    if (this.#waiting >= maxWaiting || isPaused) {
      this.#lostBlocks++
      return
    }
    this.#waiting++
    this.#send(block)
      .then(() => {
        this.#isFailing = false
      })
      .catch((error: unknown) => this.#failed(error))
      .finally(() => {
        this.#waiting--
      })
  }

  async #send(block: Uint8Array): Promise<void> {
    this.#opened ??= this.#open()
    const { client } = await this.#opened
    await client.publish(decisionSubject, block, { timeout: responseTimeoutMs })
  }

  async #open() {
    try {
      const client = await import('./nats-connection.ts')
      const { connectTo, DiscardPolicy, findOrCreateStream, jetstream, jetstreamManager } = client
      const connection = await connectTo(this.#options.servers)
      const manager = await jetstreamManager(connection, { timeout: responseTimeoutMs })
      await findOrCreateStream(manager, {
        name: decisionStream,
        subjects: [decisionSubject],
        discard: DiscardPolicy.Old,
        deny_delete: false,
        max_age: maxAgeMs * nanosPerMs,
        max_bytes: maxStreamBytes,
      })
      return { connection, client: jetstream(connection) }
    } catch (error) {
      this.#opened = undefined
      this.#retryAt = Date.now() + retryMs
      throw error
    }
  }

  #failed(error: unknown): void {
    this.#lostBlocks++
    if (this.#isFailing) return
    this.#isFailing = true
    const reason = error instanceof Error ? error.message : String(error)
    this.#options.onProblem(`decision records are not published: ${reason}`)
  }

  metrics() {
    return {
      decision_blocks_unpublished_total: [{ labels: [], values: [this.#lostBlocks] }],
    }
  }

  async close(): Promise<void> {
    const opened = await this.#opened?.catch(() => undefined)
    await opened?.connection.drain()
  }
}

/**
 * One entry of a key-value bucket of JetStream, written on its newest revision only. A bucket is a
 * stream `KV_<bucket>` that keeps the last message of each subject `$KV.<bucket>.<key>` (NATS
 * ADR-8), so every tool that knows buckets can look at it.
 */
import {
  DiscardPolicy,
  JetStreamApiError,
  type JetStreamClient,
  type JetStreamManager,
  jetstream,
  jetstreamManager,
  RetentionPolicy,
  StorageType,
} from '@nats-io/jetstream'
import type { NatsConnection } from '@nats-io/transport-node'
import { LogError } from './log.ts'
import { connectTo, findStream, messageOf } from './nats-connection.ts'

interface NatsRecordOptions {
  /** One or several of a cluster, with commas between. */
  readonly servers: string
  readonly bucket: string
  readonly key: string
  /** Milliseconds after which entries of the bucket go by themselves; they stay where absent. */
  readonly lifeMs?: number
}

interface Link {
  readonly connection: NatsConnection
  readonly client: JetStreamClient
  readonly manager: JetStreamManager
}

const nanosPerMs = 1_000_000

/** The server refuses a write whose expected revision is not the newest. */
const wrongRevision = 10_071

export class NatsRecord {
  readonly #options: NatsRecordOptions
  #link: Promise<Link> | undefined

  constructor(options: NatsRecordOptions) {
    this.#options = options
  }

  /** @throws LogError `storage` where the server does not answer */
  async read(
    timeoutMs: number,
    key = this.#options.key,
  ): Promise<{ readonly text: string; readonly revision: number } | undefined> {
    return this.#within(timeoutMs, async ({ manager }) => {
      const message = await manager.streams
        .getMessage(this.#stream, { last_by_subj: this.#subjectOf(key) })
        .catch((error) => {
          if (error instanceof JetStreamApiError && error.status === 404) return null
          throw error
        })
      if (message === null) return undefined
      return { text: message.string(), revision: message.seq }
    })
  }

  /**
   * Writes where the newest revision is the expected one (0: there is none); gives the new revision,
   * or undefined where somebody was faster.
   * @throws LogError `storage` where the server does not answer; it may have taken the write
   */
  async write(text: string, expected: number, timeoutMs: number): Promise<number | undefined> {
    return this.#within(timeoutMs, async ({ client }) => {
      try {
        const taken = await client.publish(this.#subjectOf(this.#options.key), text, {
          expect: { lastSubjectSequence: expected },
          timeout: timeoutMs,
        })
        return taken.seq
      } catch (error) {
        if (error instanceof JetStreamApiError && error.code === wrongRevision) return undefined
        throw error
      }
    })
  }

  /** Writes whatever is there. @throws LogError `storage` where the server does not answer */
  async put(text: string, timeoutMs: number): Promise<void> {
    await this.#within(timeoutMs, async ({ client }) => {
      await client.publish(this.#subjectOf(this.#options.key), text, { timeout: timeoutMs })
    })
  }

  async close(): Promise<void> {
    const link = await this.#link?.catch(() => undefined)
    await link?.connection.close()
  }

  get #stream(): string {
    return `KV_${this.#options.bucket}`
  }

  #subjectOf(key: string): string {
    return `$KV.${this.#options.bucket}.${key}`
  }

  async #within<Value>(timeoutMs: number, ask: (link: Link) => Promise<Value>): Promise<Value> {
    const { promise, reject } = Promise.withResolvers<never>()
    const late = () => reject(new LogError('storage', `no answer within ${timeoutMs} ms`))
    const timer = setTimeout(late, timeoutMs)
    try {
      return await Promise.race([this.#ask(ask), promise])
    } finally {
      clearTimeout(timer)
    }
  }

  async #ask<Value>(ask: (link: Link) => Promise<Value>): Promise<Value> {
    this.#link ??= this.#open()
    try {
      return await ask(await this.#link)
    } catch (cause) {
      if (cause instanceof LogError) throw cause
      throw new LogError('storage', messageOf(cause), { cause })
    }
  }

  async #open(): Promise<Link> {
    try {
      const connection = await connectTo(this.#options.servers.split(','))
      const manager = await jetstreamManager(connection, { timeout: 2_000 })
      await this.#ensureBucket(manager)
      return { connection, client: jetstream(connection), manager }
    } catch (error) {
      this.#link = undefined
      throw error
    }
  }

  async #ensureBucket(manager: JetStreamManager): Promise<void> {
    const name = this.#stream
    if ((await findStream(manager, name)) !== undefined) return
    const bucket = {
      name,
      subjects: [`$KV.${this.#options.bucket}.>`],
      retention: RetentionPolicy.Limits,
      storage: StorageType.File,
      discard: DiscardPolicy.New,
      max_msgs_per_subject: 1,
      allow_rollup_hdrs: true,
      deny_delete: true,
      num_replicas: 1,
      ...(this.#options.lifeMs !== undefined && { max_age: this.#options.lifeMs * nanosPerMs }),
    }
    await manager.streams.add(bucket).catch(async (error) => {
      // Another process may have made it meanwhile.
      if ((await findStream(manager, name)) === undefined) throw error
    })
  }
}

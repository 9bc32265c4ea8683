/**
 * One entry of a JetStream key-value bucket. `write` requires the newest revision. A bucket is a
 * stream `KV_<bucket>` that keeps the last message of each subject `$KV.<bucket>.<key>` (NATS
 * ADR-8), so every tool that knows buckets can look at it.
 */
import type { JetStreamApiError } from '@nats-io/jetstream'
import { durationText } from '../../ground/base/duration.ts'
import { LogError } from './log.ts'
import type { Link } from './nats-connection.ts'

interface NatsRecordOptions {
  /** Address of a server; several of a cluster are separated by commas. */
  readonly servers: string
  readonly bucket: string
  readonly key: string
  /** Milliseconds after which entries expire. If omitted, they stay. */
  readonly lifeMs?: number
  /** Size of the bucket in bytes, beyond which the oldest entries are dropped. If omitted, it is not limited. */
  readonly maxBytes?: number
  /** Whether entries may have their own TTL, if the server supports that (2.11 and later). */
  readonly hasEntryTtl?: boolean
}

interface Connection extends Pick<Link, 'connection' | 'client' | 'manager'> {
  readonly ApiError: typeof JetStreamApiError
  /** Whether entries may have their own TTL. */
  readonly expiresEntries: boolean
}

const nanosPerMs = 1_000_000

/** Error code of a write whose expected revision is not the newest. */
const wrongRevision = 10_071

export class NatsRecord {
  readonly #options: NatsRecordOptions
  #connection: Promise<Connection> | undefined

  constructor(options: NatsRecordOptions) {
    this.#options = options
  }

  /** @throws LogError `storage` if the server does not answer */
  async read(
    timeoutMs: number,
    key = this.#options.key,
  ): Promise<{ readonly text: string; readonly revision: number } | undefined> {
    return this.#within(timeoutMs, async ({ manager, ApiError }) => {
      const message = await manager.streams
        .getMessage(this.#stream, { last_by_subj: this.#subjectOf(key) })
        .catch((error) => {
          if (error instanceof ApiError && error.status === 404) return null
          throw error
        })
      if (message === null) return undefined
      return { text: message.string(), revision: message.seq }
    })
  }

  /**
   * Writes if the newest revision is `expected` (0 if there must be no entry). Returns the new revision, or
   * undefined if another writer was faster.
   * @throws LogError `storage` if the server does not answer; it may have accepted the write
   */
  async write(
    text: string,
    expected: number,
    timeoutMs: number,
    key = this.#options.key,
  ): Promise<number | undefined> {
    return this.#within(timeoutMs, async ({ client, ApiError }) => {
      try {
        const taken = await client.publish(this.#subjectOf(key), text, {
          expect: { lastSubjectSequence: expected },
          timeout: timeoutMs,
        })
        return taken.seq
      } catch (error) {
        if (error instanceof ApiError && error.code === wrongRevision) return undefined
        throw error
      }
    })
  }

  /**
   * Writes without a condition. The entry expires after `lifeMs`, at least a second, if the bucket supports that.
   * @throws LogError `storage` if the server does not answer
   */
  async put(
    text: string,
    timeoutMs: number,
    key = this.#options.key,
    lifeMs?: number,
  ): Promise<void> {
    await this.#within(timeoutMs, async ({ client, expiresEntries }) => {
      const ttl = lifeMs === undefined ? undefined : `${Math.max(1, Math.ceil(lifeMs / 1_000))}s`
      const options = { timeout: timeoutMs, ...(expiresEntries && ttl && { ttl }) }
      await client.publish(this.#subjectOf(key), text, options)
    })
  }

  /** The keys of the bucket that match a filter. @throws LogError `storage` if the server does not answer */
  async keys(timeoutMs: number, filter = '>'): Promise<readonly string[]> {
    const prefix = this.#subjectOf('')
    return this.#within(timeoutMs, async ({ manager }) => {
      const subjects_filter = `${prefix}${filter}`
      const { state } = await manager.streams.info(this.#stream, { subjects_filter })
      return Object.keys(state.subjects ?? {}).map((subject) => subject.slice(prefix.length))
    })
  }

  /** Removes an entry and its history. @throws LogError `storage` if the server does not answer */
  async remove(timeoutMs: number, key: string): Promise<void> {
    await this.#within(timeoutMs, async ({ manager }) => {
      await manager.streams.purge(this.#stream, { filter: this.#subjectOf(key) })
    })
  }

  async close(): Promise<void> {
    const opened = await this.#connection?.catch(() => undefined)
    await opened?.connection.close()
  }

  get #stream(): string {
    return `KV_${this.#options.bucket}`
  }

  #subjectOf(key: string): string {
    return `$KV.${this.#options.bucket}.${key}`
  }

  async #within<Value>(
    timeoutMs: number,
    ask: (connection: Connection) => Promise<Value>,
  ): Promise<Value> {
    const { promise, reject } = Promise.withResolvers<never>()
    const late = () =>
      reject(new LogError('storage', `no answer within ${durationText(timeoutMs)}`))
    const timer = setTimeout(late, timeoutMs)
    try {
      return await Promise.race([this.#ask(ask), promise])
    } finally {
      clearTimeout(timer)
    }
  }

  async #ask<Value>(ask: (connection: Connection) => Promise<Value>): Promise<Value> {
    this.#connection ??= this.#open()
    try {
      return await ask(await this.#connection)
    } catch (cause) {
      if (cause instanceof LogError) throw cause
      throw new LogError('storage', cause instanceof Error ? cause.message : String(cause), {
        cause,
      })
    }
  }

  async #open(): Promise<Connection> {
    try {
      // Most gateways have no NATS server, and its client takes memory.
      const client = await import('./nats-connection.ts')
      const { connectTo, DiscardPolicy, findOrCreateStream, jetstream, jetstreamManager } = client
      const { servers, lifeMs, maxBytes, hasEntryTtl } = this.#options
      const connection = await connectTo(servers)
      const manager = await jetstreamManager(connection, { timeout: 2_000 })
      const mayExpire = hasEntryTtl === true && isAtLeast211(connection.info?.version)
      const { config } = await findOrCreateStream(manager, {
        name: this.#stream,
        subjects: [this.#subjectOf('>')],
        max_msgs_per_subject: 1,
        allow_rollup_hdrs: true,
        ...(lifeMs !== undefined && { max_age: lifeMs * nanosPerMs }),
        ...(mayExpire && { allow_msg_ttl: true }),
        ...(maxBytes !== undefined && { max_bytes: maxBytes, discard: DiscardPolicy.Old }),
      })
      return {
        connection,
        client: jetstream(connection),
        manager,
        ApiError: client.JetStreamApiError,
        expiresEntries: config.allow_msg_ttl === true,
      }
    } catch (error) {
      this.#connection = undefined
      throw error
    }
  }
}

/** Servers before version 2.11 refuse a TTL per message. */
function isAtLeast211(version = ''): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return major > 2 || (major === 2 && minor >= 11)
}

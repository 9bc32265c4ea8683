/**
 * The streams of time series on a NATS server, by which the replicas of a controller share what proxies report. Each
 * period has its own stream, so that many short buckets do not push out the long ones.
 */
import { type JetStreamClient, type JetStreamManager, jetstream } from '@nats-io/jetstream'
import type { NatsConnection } from '@nats-io/transport-node'
import type { SeriesReport } from '../../ground/model/series.ts'
import { Arrivals } from './arrivals.ts'
import { connectTo, DiscardPolicy, findOrCreateStream, openManager } from './nats-connection.ts'
import { followMessages } from './nats-reader.ts'

/** A report of a proxy, `namespace/gateway/name`. */
interface SharedReport extends SeriesReport {
  readonly proxy: string
}

interface SeriesStreamsOptions {
  readonly servers: string
  /** Maximum bytes of the stream of each period, by its duration in ms. */
  readonly maxBytes: ReadonlyMap<number, number>
  /** Called with every report, including those of other replicas and those that are stored. */
  readonly receive: (report: SharedReport) => void
}

const streamOf = (periodMs: number) => ({
  name: `SLUICE_SERIES_${periodMs / 1_000}`,
  prefix: `sluice-series.${periodMs / 1_000}`,
})

const responseTimeoutMs = 5_000

export class SeriesStreams {
  readonly #connection: NatsConnection
  readonly #client: JetStreamClient
  readonly #ending = new AbortController()
  /** Resolves when everything has been received that was stored when the streams were opened. */
  readonly isRead: Promise<unknown>

  private constructor(
    connection: NatsConnection,
    lastSequences: ReadonlyMap<number, number>,
    receive: SeriesStreamsOptions['receive'],
  ) {
    this.#connection = connection
    this.#client = jetstream(connection, { timeout: responseTimeoutMs })
    const reconnects = announceReconnects(connection)
    this.isRead = Promise.all(
      [...lastSequences].map(([periodMs, last]) =>
        this.#follow(periodMs, last, reconnects, receive),
      ),
    )
  }

  /** @throws LogError if the server cannot be reached, or does not create the streams */
  static async open({ servers, maxBytes, receive }: SeriesStreamsOptions): Promise<SeriesStreams> {
    const connection = await connectTo(servers)
    try {
      const manager = await openManager(connection)
      const lastSequences = new Map<number, number>()
      for (const [periodMs, limit] of maxBytes) {
        lastSequences.set(periodMs, await ensureStream(manager, periodMs, limit))
      }
      return new SeriesStreams(connection, lastSequences, receive)
    } catch (error) {
      await connection.close()
      throw error
    }
  }

  /** Follows a stream until it is closed. Resolves once what it has now was received. */
  #follow(
    periodMs: number,
    last: number,
    reconnects: Arrivals,
    receive: SeriesStreamsOptions['receive'],
  ): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    if (last === 0) resolve()
    const link = { client: this.#client, stream: streamOf(periodMs), reconnects }
    const follow = async () => {
      for await (const message of followMessages(link, { from: 1, signal: this.#ending.signal })) {
        const report = decode(Buffer.from(message.data))
        if (report !== undefined) receive(report)
        if (message.seq >= last) resolve()
      }
    }
    follow().finally(resolve)
    return promise
  }

  /** Resolves when the server has stored the report; rejects if it does not. */
  async publish(report: SharedReport): Promise<void> {
    const { proxy, periodMs, frames } = report
    const head = Buffer.from(`${JSON.stringify({ proxy, periodMs })}\n`)
    await this.#client.publish(streamOf(periodMs).prefix, Buffer.concat([head, frames]))
  }

  async close(): Promise<void> {
    this.#ending.abort()
    await this.#connection.close()
  }
}

/** Returns the sequence of the last message; 0 if there is none. */
async function ensureStream(
  manager: JetStreamManager,
  periodMs: number,
  maxBytes: number,
): Promise<number> {
  const { name, prefix } = streamOf(periodMs)
  const { state } = await findOrCreateStream(manager, {
    name,
    subjects: [prefix],
    discard: DiscardPolicy.Old,
    deny_delete: false,
    max_bytes: maxBytes,
  })
  return state.messages === 0 ? 0 : state.last_seq
}

function announceReconnects(connection: NatsConnection): Arrivals {
  const reconnects = new Arrivals()
  void (async () => {
    for await (const { type } of connection.status()) {
      if (type === 'reconnect') reconnects.announce()
    }
  })()
  return reconnects
}

/** Returns undefined for a message that is no report. */
function decode(bytes: Buffer): SharedReport | undefined {
  const end = bytes.indexOf('\n')
  try {
    const head = JSON.parse(bytes.toString('utf8', 0, end)) as Partial<SharedReport>
    const { proxy, periodMs } = head
    if (typeof proxy !== 'string' || typeof periodMs !== 'number') return undefined
    return { proxy, periodMs, frames: bytes.subarray(end + 1) }
  } catch {
    return undefined
  }
}

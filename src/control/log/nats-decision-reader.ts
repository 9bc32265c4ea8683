/** Reads the stream of decision records on a NATS server. */
import { type JsMsg, jetstream } from '@nats-io/jetstream'
import { LogError } from './log.ts'
import { connectTo, findStream, messageOf, openManager, persist } from './nats-connection.ts'
import { decisionStream, decisionSubject } from './nats-decisions.ts'

interface PublishedBlocks {
  /** Sequence of the message in the stream. */
  readonly sequence: number
  readonly bytes: Buffer
}

/** Maximum number of messages in memory. */
const batch = 32
/** How long the server may take for a batch, in milliseconds. */
const batchTimeoutMs = 5_000
const patienceMs = 10_000

/**
 * The messages that the stream has at the time of the call, oldest first.
 * @throws LogError `foreign` if there is no stream, `unsupported` or `storage` if the server fails
 */
export async function* readPublishedBlocks(servers: string): AsyncGenerator<PublishedBlocks> {
  const connection = await connectTo(servers)
  try {
    const manager = await openManager(connection)
    const find = () => findStream(manager, decisionStream)
    const found = await persist(find, performance.now() + patienceMs)
    if (found === undefined) {
      throw new LogError('foreign', `the NATS server has no stream ${decisionStream}`)
    }
    if (found.state.messages === 0) return
    const consumer = await jetstream(connection).consumers.get(decisionStream)
    let isOver = false
    while (!isOver) {
      const messages = await consumer.fetch({ max_messages: batch, expires: batchTimeoutMs })
      let last: JsMsg | undefined
      for await (const message of messages) {
        yield { sequence: message.seq, bytes: Buffer.from(message.data) }
        last = message
        isOver = message.seq >= found.state.last_seq || message.info.pending === 0
        if (isOver) break
      }
      if (last === undefined) throw new Error('it sends no more messages')
    }
  } catch (cause) {
    if (cause instanceof LogError) throw cause
    const message = `reading the stream ${decisionStream} failed: ${messageOf(cause)}`
    throw new LogError('storage', message, { cause })
  } finally {
    await connection.close()
  }
}

/**
 * The messages that proxies publish from now on. Ends when the signal is aborted or the connection is closed.
 * @throws LogError `storage` if the server cannot be reached
 */
export async function* followPublishedBlocks(
  servers: string,
  signal: AbortSignal,
): AsyncGenerator<{ readonly bytes: Buffer }> {
  const connection = await connectTo(servers)
  const end = () => void connection.close()
  signal.addEventListener('abort', end, { once: true })
  if (signal.aborted) end()
  try {
    for await (const { data } of connection.subscribe(decisionSubject)) {
      yield { bytes: Buffer.from(data) }
    }
  } finally {
    signal.removeEventListener('abort', end)
    await connection.close()
  }
}

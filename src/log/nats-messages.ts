import type { ConsumerMessages, JsMsg } from '@nats-io/jetstream'
import type { Link } from './nats-connection.ts'

interface MessageRange {
  /** Sequence to begin at. */
  readonly from: number
  /** Only this subject. */
  readonly subject?: string
  /** Leave the bodies on the server. */
  readonly headersOnly?: boolean
  readonly signal: AbortSignal
}

/** By default a consumer notices only after 46 s that it is cut off. */
const tuning = { idle_heartbeat: 1000, expires: 5000 } as const
/** The server forgets a consumer that nobody pulls from after this time, in milliseconds. */
const inactiveMs = 30_000
const pauseMs = 100

/**
 * Messages of the stream in order, those to come included, until the signal is aborted. Goes on
 * where it was after a reconnect or a restart of the server.
 */
export async function* followMessages(link: Link, range: MessageRange): AsyncGenerator<JsMsg> {
  const { signal } = range
  let from = range.from
  while (!signal.aborted) {
    const messages = await consume(link, { ...range, from }).catch(() => undefined)
    if (messages === undefined) {
      await pause(link, signal)
      continue
    }
    const over = new AbortController()
    const stop = () => messages.stop()
    signal.addEventListener('abort', stop, { once: true })
    if (signal.aborted) stop()
    // The consumer was in the memory of a server that may be gone.
    void link.reconnects.next(over.signal).then(stop)
    try {
      for await (const message of messages) {
        yield message
        from = message.seq + 1
      }
    } catch {
      // Whatever ended it, a new consumer goes on behind the last message.
    } finally {
      signal.removeEventListener('abort', stop)
      over.abort()
      stop()
    }
    await pause(link, signal)
  }
}

async function consume(
  { client, stream }: Link,
  { from, subject, headersOnly }: MessageRange,
): Promise<ConsumerMessages> {
  const consumer = await client.consumers.get(stream, {
    opt_start_seq: from,
    inactive_threshold: inactiveMs,
    ...(subject !== undefined && { filter_subjects: subject }),
    ...(headersOnly === true && { headers_only: true }),
  })
  return consumer.consume({ ...tuning, max_messages: headersOnly === true ? 2000 : 256 })
}

/** Waits a moment, or until the connection is back. */
async function pause({ reconnects }: Link, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return
  const over = AbortSignal.any([signal, AbortSignal.timeout(pauseMs)])
  await reconnects.next(over)
}

import type { ConsumerMessages, JsMsg } from '@nats-io/jetstream'
import { decodeEvent } from './encode.ts'
import { LogError, type Recorded } from './log.ts'
import { type Link, subjectIn } from './nats-connection.ts'
import { parseFrame } from './nats-frames.ts'
import type { StreamIndex } from './nats-index.ts'

/**
 * Reads events from a position on, including future ones, until the signal is aborted. Each message waits
 * until the index has decided whether it belongs to an event. With a subject, reads only its events.
 * @throws LogError `purged` if an event was removed before it was read
 */
export async function* readEvents(
  link: Link,
  index: StreamIndex,
  from: number,
  signal: AbortSignal,
  subject?: string,
): AsyncGenerator<Recorded> {
  let next = from
  let collecting: { readonly position: number; readonly parts: Uint8Array[] } | undefined
  for await (const message of followMessages(link, {
    from: startOf(index, next),
    signal,
    ...(subject !== undefined && { subject }),
  })) {
    await decided(index, message.seq, signal)
    if (signal.aborted) return
    const position = index.positionAt(message.seq)
    if (position !== undefined && position >= next) {
      if (position > next && subject === undefined) throw purged(next)
      collecting = { position, parts: [] }
    }
    if (collecting === undefined) continue
    collecting.parts.push(message.data)
    if (!isLastPart(message)) continue
    next = collecting.position + 1
    yield decodeEvent(collecting.position, Buffer.concat(collecting.parts).toString())
    if (signal.aborted) return
    collecting = undefined
  }
}

function startOf(index: StreamIndex, position: number): number {
  if (position < index.firstPosition()) throw purged(position)
  return index.sequenceOf(position) ?? index.decidedUpTo + 1
}

async function decided(index: StreamIndex, sequence: number, signal: AbortSignal): Promise<void> {
  while (index.decidedUpTo < sequence && !signal.aborted) await index.arrivals.next(signal)
}

function isLastPart({ headers }: JsMsg): boolean {
  const event = parseFrame(headers)?.event
  return event === undefined || event.part === event.parts
}

const purged = (position: number) => new LogError('purged', `position ${position} was purged`)

interface MessageRange {
  /** Sequence to begin at. */
  readonly from: number
  /** Whether to leave the bodies on the server. */
  readonly headersOnly?: boolean
  /** If set, only messages of this subject are read. */
  readonly subject?: string
  readonly signal: AbortSignal
}

/** What is needed to read a stream. */
type StreamLink = Pick<Link, 'client' | 'stream' | 'reconnects'>

/** Timing of consumers. With the defaults, a consumer notices a lost connection only after 46 s. */
const consumerTiming = { idle_heartbeat: 1000, expires: 5000 } as const
/** Time after which the server removes an unused consumer, in milliseconds. */
const inactiveMs = 30_000
const pauseMs = 100

/**
 * Reads messages of the stream in order, including future ones, until the signal is aborted. Continues after
 * a reconnect or a restart of the server.
 */
export async function* followMessages(
  link: StreamLink,
  range: MessageRange,
): AsyncGenerator<JsMsg> {
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
    // After a reconnect, a new consumer is needed: the server kept this one in memory and may have lost it.
    void link.reconnects.next(over.signal).then(stop)
    try {
      for await (const message of messages) {
        yield message
        from = message.seq + 1
      }
    } catch {
      // Whatever the reason, a new consumer continues behind the last message.
    } finally {
      signal.removeEventListener('abort', stop)
      over.abort()
      stop()
    }
    await pause(link, signal)
  }
}

async function consume(
  { client, stream }: StreamLink,
  { from, headersOnly, subject }: MessageRange,
): Promise<ConsumerMessages> {
  const consumer = await client.consumers.get(stream.name, {
    opt_start_seq: from,
    inactive_threshold: inactiveMs,
    ...(headersOnly === true && { headers_only: true }),
    ...(subject !== undefined && { filter_subjects: subjectIn(stream, subject) }),
  })
  return consumer.consume({ ...consumerTiming, max_messages: headersOnly === true ? 2000 : 256 })
}

/** Waits briefly, or until the connection is back. */
async function pause({ reconnects }: StreamLink, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return
  const over = AbortSignal.any([signal, AbortSignal.timeout(pauseMs)])
  await reconnects.next(over)
}

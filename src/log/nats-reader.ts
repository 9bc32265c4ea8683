import type { JsMsg } from '@nats-io/jetstream'
import { decodeEvent } from './encode.ts'
import { LogError, type Recorded } from './log.ts'
import type { Link } from './nats-connection.ts'
import { parseFrame } from './nats-frames.ts'
import type { StreamIndex } from './nats-index.ts'
import { followMessages } from './nats-messages.ts'

interface EventRange {
  /** Position to begin at. */
  readonly from: number
  /** Only this subject. */
  readonly subject?: string
  readonly signal: AbortSignal
}

/**
 * Events from a position on, those to come included, until the signal is aborted. The index says
 * which messages count, and where; a message is held back until it has decided.
 * @throws LogError `purged` where an event between is not there any more.
 */
export async function* readEvents(
  link: Link,
  index: StreamIndex,
  range: EventRange,
): AsyncGenerator<Recorded> {
  const { subject, signal } = range
  let next = range.from
  const from = startOf(index, next)
  const messages = { from, signal, ...(subject !== undefined && { subject }) }
  let collecting: { readonly position: number; readonly parts: Uint8Array[] } | undefined
  for await (const message of followMessages(link, messages)) {
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

/**
 * How events are stored in a JetStream stream. Each message is a frame.
 * It has one event or a part of one, since the server limits the size of messages. An append is a batch
 * of consecutive frames. The headers of a frame say where it belongs in the batch:
 *
 *   Sluice-Batch: <batch id>/<index, from 1>/<frames of the batch>/<last position before it>
 *   Sluice-Event: <number in the batch, from 1>/<part, from 1>/<parts>/<digest of the event's id>
 *   Sluice-Purged: <position>     only in the frame of a purge, which has no event
 *
 * docs/adr/0003-log-on-jetstream.md gives the reasons.
 */
import { hash, randomBytes } from 'node:crypto'
import { headers, type MsgHdrs } from '@nats-io/transport-node'
import type { EncodedEvent } from './encode.ts'

const batchHeader = 'Sluice-Batch'
const eventHeader = 'Sluice-Event'
const purgedHeader = 'Sluice-Purged'

/** Subjects of resources have five tokens, so that none equals this one. */
const purgeSubject = 'sluice.log.purged'

/** Which event of a batch a frame has, and which part of it. */
interface EventFrame {
  /** Position of the event is the batch's `base` plus this number. */
  readonly number: number
  readonly part: number
  readonly parts: number
  readonly digest: string
}

/** The headers of a message. */
export interface BatchFrame {
  readonly batch: string
  /** From 1 to `count`. */
  readonly index: number
  readonly count: number
  /** Position of the last event before the batch. */
  readonly base: number
  readonly event: EventFrame | undefined
  /** Events up to this position are purged. */
  readonly purgedUpTo: number | undefined
}

/** A frame to send to the server, with its subject and body. */
export interface OutgoingFrame {
  readonly subject: string
  readonly frame: BatchFrame
  readonly body: Uint8Array
}

/** Digest of an event's id, since headers do not allow all its characters. Collisions are improbable. */
export function digestOf(id: string): string {
  return hash('sha256', id, 'base64url').slice(0, 16)
}

const newBatchId = () => randomBytes(9).toString('base64url')

/** Cuts events into frames of at most `maxBytes` of body each. */
export function cutBatch(
  events: readonly (EncodedEvent & { readonly digest: string })[],
  base: number,
  maxBytes: number,
): readonly OutgoingFrame[] {
  const pieces = events.flatMap(({ subject, body, digest }, index) => {
    const bytes = Buffer.from(body)
    const parts = Math.max(1, Math.ceil(bytes.length / maxBytes))
    return Array.from({ length: parts }, (_, part) => ({
      subject,
      event: { number: index + 1, part: part + 1, parts, digest },
      body: bytes.subarray(part * maxBytes, (part + 1) * maxBytes),
    }))
  })
  const batch = newBatchId()
  return pieces.map(({ subject, event, body }, index) => ({
    subject,
    body,
    frame: { batch, index: index + 1, count: pieces.length, base, event, purgedUpTo: undefined },
  }))
}

/** Creates the frame that informs every reader how far the log was purged. */
export function purgeFrame(base: number, purgedUpTo: number): OutgoingFrame {
  const frame = { batch: newBatchId(), index: 1, count: 1, base, event: undefined, purgedUpTo }
  return { subject: purgeSubject, frame, body: new Uint8Array() }
}

export function frameHeaders({
  batch,
  index,
  count,
  base,
  event,
  purgedUpTo,
}: BatchFrame): MsgHdrs {
  const list = headers()
  list.set(batchHeader, `${batch}/${index}/${count}/${base}`)
  if (event !== undefined) {
    list.set(eventHeader, `${event.number}/${event.part}/${event.parts}/${event.digest}`)
  }
  if (purgedUpTo !== undefined) list.set(purgedHeader, String(purgedUpTo))
  return list
}

/** Message id of a frame. The server stores a frame that is sent again with the same id only once. */
export const messageIdOf = ({ batch, index }: BatchFrame): string => `${batch}/${index}`

/** Returns undefined if the message is not a frame. */
export function parseFrame(list: MsgHdrs | undefined): BatchFrame | undefined {
  const [batch, ...numbers] = (list?.get(batchHeader) ?? '').split('/')
  const [index = 0, count = 0, base = -1] = numbers.map(Number)
  if (batch === undefined || !(index >= 1 && index <= count && base >= 0)) return undefined
  const purged = list?.get(purgedHeader) ?? ''
  return {
    batch,
    index,
    count,
    base,
    event: parseEvent(list?.get(eventHeader) ?? ''),
    purgedUpTo: purged === '' ? undefined : Number(purged),
  }
}

function parseEvent(text: string): EventFrame | undefined {
  const [number = 0, part = 0, parts = 0] = text.split('/', 3).map(Number)
  const digest = text.split('/')[3]
  if (digest === undefined || !(number >= 1 && part >= 1 && part <= parts)) return undefined
  return { number, part, parts, digest }
}

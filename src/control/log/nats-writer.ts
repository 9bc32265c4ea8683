import { JetStreamApiCodes, JetStreamApiError, type PubAck } from '@nats-io/jetstream'
import { fail, succeed } from '../../ground/base/outcome.ts'
import { type EncodedEvent, findConflict } from './encode.ts'
import { type Appended, type ExpectedVersion, LogError, type Position } from './log.ts'
import { type Deadline, type Link, persist, subjectIn } from './nats-connection.ts'
import { digestOf, frameHeaders, messageIdOf, type OutgoingFrame } from './nats-frames.ts'
import type { StoredFrame, StreamIndex } from './nats-index.ts'

/** An append that is not stored yet. */
export interface AppendRequest {
  readonly events: readonly EncodedEvent[]
  readonly expectedVersion: ExpectedVersion | undefined
}

/** What a group of appends results in, planned for one state of the log. */
interface Plan {
  /** One result for each request, in order. Valid once `events` are stored directly after that state. */
  readonly results: readonly Appended[]
  /** Events that the log does not have yet. */
  readonly events: readonly (EncodedEvent & { readonly digest: string })[]
}

export function planAppends(requests: readonly AppendRequest[], index: StreamIndex): Plan {
  const events: (EncodedEvent & { readonly digest: string })[] = []
  const staged = new Map<string, Position>()
  const lastOfSubject = new Map<string, Position>()
  const last = () => (index.lastPosition() + events.length) as Position
  const versions = {
    purgedUpTo: index.purgedUpTo,
    lastPosition: last,
    lastOfSubject: (subject: string) => lastOfSubject.get(subject) ?? index.lastOfSubject(subject),
  }
  const decide = (request: AppendRequest): Appended => {
    const wanted = request.events.map((event) => ({ ...event, digest: digestOf(event.id) }))
    const known = (digest: string) => staged.get(digest) ?? index.positionOf(digest)
    const isRepeated = wanted.every(({ digest }) => known(digest) !== undefined)
    if (request.expectedVersion !== undefined && !isRepeated) {
      const conflict = findConflict(request.expectedVersion, versions)
      if (conflict !== undefined) return fail(conflict)
    }
    return succeed(
      wanted.map((event) => {
        const before = known(event.digest)
        if (before !== undefined) return before
        events.push(event)
        staged.set(event.digest, last())
        lastOfSubject.set(event.subject, last())
        return last()
      }),
    )
  }
  return { results: requests.map(decide), events }
}

/** Maximum number of frames that are published at a time. */
const windowFrames = 256

/**
 * Publishes the frames of a batch directly behind a sequence. Returns undefined if another writer was
 * faster; readers then ignore the stored frames, and the events must be appended again. The first
 * frame is sent alone, so that only one of several writers continues.
 * @throws LogError `storage`; it is then unknown whether the batch was stored
 */
export async function publishBatch(
  link: Link,
  frames: readonly OutgoingFrame[],
  after: number,
  deadline: Deadline,
): Promise<readonly StoredFrame[] | undefined> {
  for (let start = 0; start < frames.length; ) {
    const end = start === 0 ? 1 : Math.min(start + windowFrames, frames.length)
    const sent = frames
      .slice(start, end)
      .map((frame, index) => publishFrame(link, frame, after + start + index, deadline))
    // Wait for all frames, so that none of this batch is under way when the next batch is sent.
    const settled = await Promise.allSettled(sent)
    for (const result of settled) if (result.status === 'rejected') throw result.reason
    if (settled.some((result) => result.status === 'fulfilled' && !result.value)) return undefined
    start = end
  }
  return frames.map(({ subject, frame }, index) => ({
    sequence: after + index + 1,
    subject,
    frame,
  }))
}

/** Publishes a frame, again until the server answers. Returns whether it is stored directly after `after`. */
async function publishFrame(
  link: Link,
  { subject, frame, body }: OutgoingFrame,
  after: number,
  deadline: Deadline,
): Promise<boolean> {
  const attempt = (): Promise<PubAck> =>
    link.client.publish(subjectIn(link.stream, subject), body, {
      headers: frameHeaders(frame),
      // The server recognizes the id for two minutes; later, the expected sequence prevents a second copy.
      msgID: messageIdOf(frame),
      expect: { streamName: link.stream.name, lastSequence: after },
    })
  try {
    const { seq } = await persist(attempt, deadline)
    return seq === after + 1
  } catch (error) {
    if (isOvertaken(error)) return false
    throw error
  }
}

const isOvertaken = (error: unknown): boolean =>
  error instanceof LogError &&
  error.cause instanceof JetStreamApiError &&
  error.cause.code === JetStreamApiCodes.StreamWrongLastSequence

import { JetStreamApiCodes, JetStreamApiError, type PubAck } from '@nats-io/jetstream'
import { LogError } from './log.ts'
import { type Link, messageOf } from './nats-connection.ts'
import { frameHeaders, messageIdOf, type OutgoingFrame } from './nats-frames.ts'
import type { StoredFrame } from './nats-index.ts'

/** Frames on their way at a time. */
const windowFrames = 256
const retryMs = 100

/** When to give up, on the clock of `performance.now()`. */
export type Deadline = number

/**
 * Publishes the frames of a batch directly behind a sequence. Undefined where another writer was
 * there first, at the beginning or in between: then readers pass over what was stored, and the
 * events have to be appended anew.
 *
 * The first frame travels alone, so that of several writers one goes on and the others wait.
 * @throws LogError `storage`; whether the batch was stored is unknown then.
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
    // All are waited for: nothing of this batch is on its way when the next one is.
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

/** Is the frame stored directly behind `after`? Repeats it until there is an answer. */
async function publishFrame(
  link: Link,
  { subject, frame, body }: OutgoingFrame,
  after: number,
  deadline: Deadline,
): Promise<boolean> {
  const attempt = (): Promise<PubAck> =>
    link.client.publish(subject, body, {
      headers: frameHeaders(frame),
      // The server knows the id for two minutes; after that the expected sequence refuses.
      msgID: messageIdOf(frame),
      expect: { streamName: link.stream, lastSequence: after },
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

/**
 * Does something until the server answers. A refusal is an answer, but not that it is not ready.
 * @throws LogError `storage`, the server's error as its cause.
 */
export async function persist<Result>(
  attempt: () => Promise<Result>,
  deadline: Deadline,
): Promise<Result> {
  for (;;) {
    try {
      return await attempt()
    } catch (cause) {
      if (cause instanceof LogError) throw cause
      const isRefused = cause instanceof JetStreamApiError && cause.status < 500
      const isFinal = isRefused || (cause instanceof JetStreamApiError && !isPassing(cause.code))
      if (isFinal || performance.now() > deadline) {
        throw new LogError('storage', `the NATS server failed: ${messageOf(cause)}`, { cause })
      }
      await new Promise((resolve) => setTimeout(resolve, retryMs))
    }
  }
}

/** Errors of a server that starts or has no leader yet: system unavailable, no peers, offline. */
const isPassing = (code: number): boolean => [10008, 10009, 10118, 10074].includes(code)

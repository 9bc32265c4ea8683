import {
  type AnyCloudEvent,
  DamagedEventError,
  UnknownEventTypeError,
  upcast,
} from '../../events/index.ts'
import { fail, type Outcome, succeed } from '../base/outcome.ts'
import {
  type AppendProblem,
  beginning,
  type ExpectedVersion,
  LogError,
  type Position,
  type Recorded,
} from './log.ts'

/** NATS refuses messages above 1 MiB by default; every log holds to it, so that all behave alike. */
export const maxEventBytes = 1_048_576

/** An event ready to be stored. */
export interface EncodedEvent {
  readonly id: string
  readonly subject: string
  readonly body: string
}

/** JSON of each event, or the events that would not fit. Bytes are those of the UTF-8 JSON. */
export function encodeEvents(
  events: readonly AnyCloudEvent[],
): Outcome<readonly EncodedEvent[], AppendProblem> {
  const encoded: EncodedEvent[] = []
  for (const event of events) {
    const body = JSON.stringify(event)
    // One UTF-16 unit is at most three bytes, so that short texts need no counting.
    const bytes = body.length * 3 <= maxEventBytes ? 0 : Buffer.byteLength(body)
    if (bytes > maxEventBytes) return fail(tooLarge(event, bytes))
    encoded.push({ id: event.id, subject: event.subject, body })
  }
  return succeed(encoded)
}

function tooLarge(event: AnyCloudEvent, bytes: number): AppendProblem {
  return {
    reason: 'too-large',
    id: event.id,
    subject: event.subject,
    bytes,
    limitBytes: maxEventBytes,
    message: `the event has ${bytes} bytes and the log takes at most ${maxEventBytes}`,
  }
}

/**
 * @throws UnknownEventTypeError where a newer version has written the event.
 * @throws DamagedEventError where it is none.
 * @throws LogError `corrupt` where the text is not JSON.
 */
export function decodeEvent(position: number, body: string): Recorded {
  const parsed = parseBody(position, body)
  try {
    return { position: position as Position, event: upcast(parsed) }
  } catch (error) {
    if (error instanceof UnknownEventTypeError || error instanceof DamagedEventError) {
      error.message = `position ${position} of the log: ${error.message}`
    }
    throw error
  }
}

function parseBody(position: number, body: string): AnyCloudEvent {
  try {
    return JSON.parse(body) as AnyCloudEvent
  } catch (cause) {
    throw new LogError('corrupt', `the event at position ${position} is not JSON`, { cause })
  }
}

/** What a log knows of itself, as far as expected versions go. */
export interface LogVersions {
  readonly purgedUpTo: number
  lastPosition(): Position
  lastOfSubject(subject: string): Position
}

/**
 * The first belief that does not hold. A subject version that was purged counts as the beginning,
 * on both sides, since a log keeps nothing of a subject whose events are gone.
 */
export function findConflict(
  expected: ExpectedVersion,
  versions: LogVersions,
): AppendProblem | undefined {
  if (typeof expected === 'number') {
    const actual = versions.lastPosition()
    return expected === actual ? undefined : conflictOf(undefined, expected, actual)
  }
  const held = (position: Position) => (position <= versions.purgedUpTo ? beginning : position)
  for (const [subject, version] of expected) {
    const actual = held(versions.lastOfSubject(subject))
    if (held(version) !== actual) return conflictOf(subject, version, actual)
  }
  return undefined
}

function conflictOf(
  subject: string | undefined,
  expected: Position,
  actual: Position,
): AppendProblem {
  const where = subject === undefined ? 'the log' : subject
  const message = `${where} is at position ${actual} and was expected at ${expected}`
  return { reason: 'conflict', subject, expected, actual, message }
}

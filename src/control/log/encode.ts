import {
  type AnyCloudEvent,
  DamagedEventError,
  UnknownEventTypeError,
  upcast,
} from '../../../events/index.ts'
import { fail, type Outcome, succeed } from '../../ground/base/outcome.ts'
import {
  type AppendProblem,
  beginning,
  type ExpectedVersion,
  LogError,
  type Position,
  type Recorded,
} from './log.ts'

/** Maximum bytes of an event in every log, since NATS refuses messages above 1 MiB by default. */
export const maxEventBytes = 1_048_576

/** An event ready to be stored. */
export interface EncodedEvent {
  readonly id: string
  readonly subject: string
  readonly body: string
}

/** Encodes events as JSON. Fails with the first event whose UTF-8 text is too large. */
export function encodeEvents(
  events: readonly AnyCloudEvent[],
): Outcome<readonly EncodedEvent[], AppendProblem> {
  const encoded: EncodedEvent[] = []
  for (const event of events) {
    const body = JSON.stringify(event)
    // A UTF-16 unit has at most three bytes in UTF-8, so the bytes of short texts need not be counted.
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
 * @throws UnknownEventTypeError if a newer version has written the event
 * @throws DamagedEventError if it is not an event
 * @throws LogError `corrupt` if the text is not JSON
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

/** The current versions of a log, which are compared with expected ones. */
export interface LogVersions {
  readonly purgedUpTo: number
  lastPosition(): Position
  lastOfSubject(subject: string): Position
}

/**
 * Returns a conflict for the first expected version that differs. A purged position counts as `beginning`,
 * whether expected or actual, since a log keeps nothing about a subject whose events are gone.
 */
export function findConflict(
  expected: ExpectedVersion,
  versions: LogVersions,
): AppendProblem | undefined {
  if (typeof expected === 'number') {
    const actual = versions.lastPosition()
    return expected === actual ? undefined : conflictOf(undefined, expected, actual)
  }
  const orBeginning = (position: Position) =>
    position <= versions.purgedUpTo ? beginning : position
  for (const [subject, version] of expected) {
    const actual = orBeginning(versions.lastOfSubject(subject))
    if (orBeginning(version) !== actual) return conflictOf(subject, version, actual)
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

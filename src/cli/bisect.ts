/** `sluice bisect` finds the events after which an expectation about a condition began or ceased to hold. */
import { type ObjectRef, objectText } from '../model/names.ts'
import { conditionHistory, type PlacedCondition } from './conditions.ts'
import { causeText } from './event-text.ts'
import { parseObjectPath, suggestObjects } from './object-names.ts'
import { type Answer, exitCode, type Output, UsageError } from './output.ts'
import { type Recording, type RecordingOptions, readRecording } from './recording.ts'

interface Expectation {
  readonly object: ObjectRef
  readonly type: string
  /** The expected status, such as `True`, or the expected reason, such as `Accepted`. */
  readonly value: string
}

/**
 * Parses `KIND/[NAMESPACE/]NAME TYPE=VALUE`, where the value is a status or a reason.
 * @throws UsageError
 */
function parseExpectation(text: string): Expectation {
  const [, path, type, value] = /^(\S+)\s+([A-Za-z]+)=(\w+)$/.exec(text.trim()) ?? []
  if (path === undefined || type === undefined || value === undefined) {
    throw new UsageError(`--expect '${text}' is not 'KIND/NAME CONDITION=VALUE'`)
  }
  return { object: parseObjectPath(path), type, value }
}

/** An expectation holds if the condition exists and has the expected value in every place that has it. */
function holds({ type, value }: Expectation, placed: readonly PlacedCondition[]): boolean {
  const found = placed.filter(({ condition }) => condition.type === type)
  const agrees = found.every(
    ({ condition }) => condition.status === value || condition.reason === value,
  )
  return found.length > 0 && agrees
}

/** An event after which the expectation began or ceased to hold. */
interface Flip {
  readonly holds: boolean
  readonly position: number
  readonly time: string
  readonly cause: string
}

function findFlips(recording: Recording, expectation: Expectation) {
  const { initial, steps } = conditionHistory(recording, expectation.object)
  const heldInitially = holds(expectation, initial)
  const flips: Flip[] = []
  for (const { cause, conditions } of steps) {
    const { position, event } = cause
    const isHeld = holds(expectation, conditions)
    if (isHeld !== (flips.at(-1)?.holds ?? heldInitially)) {
      flips.push({ holds: isHeld, position, time: event.time, cause: causeText(event) })
    }
  }
  return { heldInitially, flips }
}

function flipText({ holds: isHeld, position, time, cause }: Flip): string {
  return `${isHeld ? 'holds since' : 'broken by'} event ${position}, ${time}: ${cause}`
}

/** The exit code is 1 if the expectation does not hold after the last event. */
export async function bisect(
  options: RecordingOptions & { readonly expect: string },
  report: Output['report'],
): Promise<Answer> {
  const expectation = parseExpectation(options.expect)
  const recording = await readRecording(options, report)
  const { heldInitially, flips } = findFlips(recording, expectation)
  const isHeld = flips.at(-1)?.holds ?? heldInitially
  const unchangedText = () => {
    const { object, type, value } = expectation
    const { events } = recording
    const had = heldInitially ? 'had' : 'never had'
    const suggestion = isHeld ? '' : suggestObjects(object, events)
    return `${objectText(object)} ${had} ${type}=${value} in all of ${events.length} events${suggestion}`
  }
  return {
    text: () => (flips.length === 0 ? [unchangedText()] : flips.map(flipText)),
    json: { expectation, holds: isHeld, turns: flips },
    exitCode: isHeld ? exitCode.success : exitCode.negative,
  }
}

/** `sluice bisect` finds the events after which an expectation about a condition began or ceased to hold. */
import { conditionHistory } from '../explain/conditions.ts'
import { causeText } from '../explain/event-text.ts'
import { type Expectation, findFlips } from '../explain/expectation.ts'
import { objectText } from '../model/names.ts'
import { createFold } from '../replay/index.ts'
import { parseObjectPath, suggestObjects } from './object-names.ts'
import { type Answer, exitCode, type Output, UsageError } from './output.ts'
import { type RecordingOptions, readRecording } from './recording.ts'

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

/** An event after which the expectation began or ceased to hold. */
interface Flip {
  readonly holds: boolean
  readonly position: number
  readonly time: string
  readonly cause: string
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
  const { events, derivation, extent } = recording
  const history = conditionHistory(createFold(derivation, extent.base), events, expectation.object)
  const { heldInitially, flips: found } = findFlips(history, expectation)
  const flips = found.map(({ holds, cause: { position, event } }) => {
    return { holds, position, time: event.time, cause: causeText(event) }
  })
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

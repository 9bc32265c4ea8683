/** `sluice bisect` finds the events after which an expectation about a condition began or ceased to hold. */

import { objectText } from '../../../ground/model/names.ts'
import { causeText } from '../../../past/explain/event-text.ts'
import { type Expectation, findFlips } from '../../../past/explain/expectation.ts'
import { readHistory } from '../recording/condition-history.ts'
import { parseObjectPath, suggestObjects } from '../recording/object-names.ts'
import {
  type OpenRecording,
  type RecordingOptions,
  reportProblems,
  withRecording,
} from '../recording/recording.ts'
import { type CommandResult, exitCode, type Output, UsageError } from '../shared/output.ts'

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
): Promise<CommandResult> {
  const expectation = parseExpectation(options.expect)
  const { object, type, value } = expectation
  const read = async (recording: OpenRecording) => {
    const { history, events, known } = await readHistory(recording, object)
    reportProblems(recording, report)
    const { heldInitially, flips } = findFlips(history, expectation)
    const isHeld = flips.at(-1)?.holds ?? heldInitially
    const suggestion = flips.length > 0 || isHeld ? '' : suggestObjects(object, await known())
    const had = heldInitially ? 'had' : 'never had'
    const unchanged = `${objectText(object)} ${had} ${type}=${value} in all of ${events} events${suggestion}`
    return { found: flips, isHeld, unchanged }
  }
  const { found, isHeld, unchanged } = await withRecording(options, read)
  const flips = found.map(({ holds, cause: { position, event } }) => {
    return { holds, position, time: event.time, cause: causeText(event) }
  })
  return {
    text: () => (flips.length === 0 ? [unchanged] : flips.map(flipText)),
    json: { expectation, holds: isHeld, turns: flips },
    exitCode: isHeld ? exitCode.success : exitCode.negative,
  }
}

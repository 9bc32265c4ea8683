/** `sluice explain condition` lists the events that changed the conditions of an object. */

import { objectText } from '../../../ground/model/names.ts'
import type { ConditionChange } from '../../../past/explain/conditions.ts'
import { causeText } from '../../../past/explain/event-text.ts'
import { readHistory } from '../recording/condition-history.ts'
import { parseObjectPath, suggestObjects } from '../recording/object-names.ts'
import {
  type OpenRecording,
  type RecordingOptions,
  reportProblems,
  withRecording,
} from '../recording/recording.ts'
import { type CommandResult, exitCode, type Output } from '../shared/output.ts'

function changeText({ place, type, status, reason, message }: ConditionChange): string {
  const where = place === '' ? '' : ` (${place})`
  return `  ${type}${where}: ${status} ${reason}${message === '' ? '' : `: ${message}`}`.trimEnd()
}

/** The exit code is 1 if no event changed a condition of the object. */
export async function explainCondition(
  path: string,
  options: RecordingOptions,
  report: Output['report'],
): Promise<CommandResult> {
  const object = parseObjectPath(path)
  const read = async (recording: OpenRecording) => {
    const { history, known } = await readHistory(recording, object)
    reportProblems(recording, report)
    const { steps } = history
    if (steps.length > 0) return { steps }
    return { steps, isWhole: recording.extent.state === 'whole', known: await known() }
  }
  const { steps, isWhole, known = [] } = await withRecording(options, read)
  if (steps.length === 0) {
    const never = isWhole ? 'never had a condition' : 'had no change of a condition'
    report(`${objectText(object)} ${never}${suggestObjects(object, known)}`)
    return { text: () => [], exitCode: exitCode.negative }
  }
  const explained = steps.map(({ cause: { position, event }, changes }) => ({
    event: { position, time: event.time, cause: causeText(event) },
    changes,
  }))
  return {
    text: () => [
      objectText(object),
      ...explained.flatMap(({ event: { position, time, cause }, changes }) => [
        `\nevent ${position}, ${time}: ${cause}`,
        ...changes.map(changeText),
      ]),
    ],
    json: {
      object,
      changes: explained.flatMap(({ event, changes }) =>
        changes.map((change) => ({ ...event, ...change })),
      ),
    },
  }
}

/** `sluice explain condition` lists the events that changed the conditions of an object. */

import { type ConditionChange, conditionHistory } from '../explain/conditions.ts'
import { causeText } from '../explain/event-text.ts'
import { objectText } from '../model/names.ts'
import { createFold } from '../replay/index.ts'
import { parseObjectPath, suggestObjects } from './object-names.ts'
import { type Answer, exitCode, type Output } from './output.ts'
import { type RecordingOptions, readRecording } from './recording.ts'

function changeText({ place, type, status, reason, message }: ConditionChange): string {
  const where = place === '' ? '' : ` (${place})`
  return `  ${type}${where}: ${status} ${reason}${message === '' ? '' : `: ${message}`}`.trimEnd()
}

/** The exit code is 1 if no event changed a condition of the object. */
export async function explainCondition(
  path: string,
  options: RecordingOptions,
  report: Output['report'],
): Promise<Answer> {
  const object = parseObjectPath(path)
  const recording = await readRecording(options, report)
  const fold = createFold(recording.derivation, recording.extent.base)
  const { steps } = conditionHistory(fold, recording.events, object)
  if (steps.length === 0) {
    const isWhole = recording.extent.state === 'whole'
    const never = isWhole ? 'never had a condition' : 'had no change of a condition'
    report(`${objectText(object)} ${never}${suggestObjects(object, recording.events)}`)
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

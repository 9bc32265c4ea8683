/** `sluice explain condition`: what made each condition of an object what it is, event by event. */
import type { SluiceEvent } from '../../events/index.ts'
import type { ObjectRef } from '../model/names.ts'
import { type ConditionChange, followConditions } from './condition-history.ts'
import { eventDetail, shortType } from './event-text.ts'
import { type OfflineOptions, readRecording, tellExtent } from './offline.ts'
import { exitCode, type Output, type OutputFormat } from './output.ts'
import { objectText, parseObjectPath } from './status.ts'

/** `HTTPRoute default/app generation 2`, or what else the event is about. */
export function causeText(event: SluiceEvent): string {
  const { kind, namespace, name } = event.data as Partial<ObjectRef>
  const about =
    kind === undefined || name === undefined
      ? ''
      : ` ${objectText({ kind, namespace: namespace ?? '', name })}`
  const detail = eventDetail(event)
  return `${shortType(event.type)}${about}${detail === '' ? '' : `, ${detail}`}`
}

function described({ place, type, state, cause: { position, event } }: ConditionChange) {
  return {
    position,
    time: event.time,
    cause: causeText(event),
    place,
    type,
    ...(state ?? { status: 'absent' as const, reason: '', message: '' }),
  }
}

/** Exit code 1 where the object never had a condition. */
export async function explainCondition(
  path: string,
  options: OfflineOptions,
  format: OutputFormat,
  output: Output,
): Promise<number> {
  const ref = parseObjectPath(path)
  const recording = await readRecording(options)
  const { events, extent } = recording
  tellExtent(recording, output)
  const changes: ReturnType<typeof described>[] = []
  const note = (_: unknown, changed: readonly ConditionChange[]) =>
    void changes.push(...changed.map(described))
  followConditions(events, ref, note, extent.base)
  if (changes.length === 0) {
    const never =
      extent.state === 'whole' ? 'never had a condition' : 'had no change of a condition'
    output.report(`${objectText(ref)} ${never}`)
    return exitCode.no
  }
  if (format === 'json') {
    output.print(JSON.stringify({ object: ref, changes }, undefined, 2))
    return exitCode.fine
  }
  output.print(`${objectText(ref)}`)
  let last: number | undefined
  for (const { position, time, cause, place, type, status, reason, message } of changes) {
    if (position !== last) output.print(`\nevent ${position}, ${time}: ${cause}`)
    last = position
    const where = place === '' ? '' : ` (${place})`
    output.print(
      `  ${type}${where}: ${status} ${reason}${message === '' ? '' : `: ${message}`}`.trimEnd(),
    )
  }
  return exitCode.fine
}

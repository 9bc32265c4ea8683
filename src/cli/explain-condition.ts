/** `sluice explain condition`: what made each condition of an object what it is, event by event. */
import type { SluiceEvent } from '../../events/index.ts'
import type { Recorded } from '../log/index.ts'
import type { ObjectRef } from '../model/names.ts'
import { type ConditionChange, followConditions } from './condition-history.ts'
import { eventDetail, shortType } from './event-text.ts'
import { type OfflineOptions, readRecording, tellRecording } from './offline.ts'
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

/** Most names that are offered for one that is not known. */
const mostOffered = 5

/** What else could be meant, where there is no such object in the log. */
export function hintOf(ref: ObjectRef, events: readonly Recorded[]): string {
  const known = new Set<string>()
  for (const { event } of events) {
    const { kind, namespace, name } = event.data as Partial<ObjectRef>
    if (kind !== ref.kind || name === undefined) continue
    if (namespace === ref.namespace && name === ref.name) return ''
    known.add(namespace ? `${namespace}/${name}` : name)
  }
  if (known.size === 0) return `: the log has no ${ref.kind}`
  const names = [...known].sort()
  const more = names.length > mostOffered ? ', …' : ''
  const offered = names.slice(0, mostOffered).join(', ')
  return `: the log has no such object; of kind ${ref.kind} it has ${offered}${more}`
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
  tellRecording(recording, output)
  const changes: ReturnType<typeof described>[] = []
  const note = (_: unknown, changed: readonly ConditionChange[]) =>
    void changes.push(...changed.map(described))
  followConditions(recording, ref, note)
  if (changes.length === 0) {
    const never =
      extent.state === 'whole' ? 'never had a condition' : 'had no change of a condition'
    output.report(`${objectText(ref)} ${never}${hintOf(ref, events)}`)
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

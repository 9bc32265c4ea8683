/** The Kubernetes Events that report a change that `changeProtection` holds, or that is delivered in steps. */
import type { ChangeHeldData, JudgedObject, SluiceEvent } from '../../../events/index.ts'
import { kinds } from '../api/kinds.ts'
import type { ObjectEvent } from './event-recorder.ts'

/** Maximum number of objects of a change that get an event. */
const maxEvents = 10

/** One event for each object of the change. Objects that were deleted have none. */
export function heldEvents(
  { objects, unmet }: Pick<ChangeHeldData, 'objects' | 'unmet'>,
  position: number,
): ObjectEvent[] {
  const why = unmet.map(({ message }) => message).join('; ')
  return eventsOf(objects, {
    type: 'Warning',
    action: 'Judge',
    reason: 'ChangeHeld',
    note: `change ${position} waits: ${why}; approve it with: sluice approve ${position}`,
  })
}

/** What an event about a rollout reports; none for steps, which conditions report. */
export function rolloutEvents(event: SluiceEvent, objects: readonly JudgedObject[]): ObjectEvent[] {
  if (event.type === 'dev.sluice.rollout.paused.v1') {
    const { rollout, reason: why } = event.data
    const note = `rollout ${rollout} is paused: ${why}; resume it with: sluice rollout resume ${rollout}`
    return eventsOf(objects, { type: 'Warning', action: 'Deliver', reason: 'RolloutPaused', note })
  }
  if (event.type !== 'dev.sluice.rollout.ended.v1' || event.data.outcome !== 'RolledBack') return []
  const { rollout, reason: why } = event.data
  const note = `rollout ${rollout} was rolled back: ${why}`
  return eventsOf(objects, { type: 'Warning', action: 'Deliver', reason: 'RolledBack', note })
}

function eventsOf(
  objects: readonly JudgedObject[],
  what: Omit<ObjectEvent, 'regarding'>,
): ObjectEvent[] {
  return objects.slice(0, maxEvents).flatMap(({ kind, namespace, name, uid }) => {
    const row = kinds.find((one) => one.kind === kind)
    if (row === undefined || uid === undefined) return []
    const version = row.versions[0] ?? ''
    const apiVersion = row.group === '' ? version : `${row.group}/${version}`
    return [{ regarding: { apiVersion, kind, namespace, name, uid }, ...what }]
  })
}

/** The Kubernetes Events that report a change that `changeProtection` holds. */
import type { ChangeHeldData } from '../../../events/index.ts'
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
  return objects.slice(0, maxEvents).flatMap(({ kind, namespace, name, uid }) => {
    const row = kinds.find((one) => one.kind === kind)
    if (row === undefined || uid === undefined) return []
    const version = row.versions[0] ?? ''
    const apiVersion = row.group === '' ? version : `${row.group}/${version}`
    return [
      {
        regarding: { apiVersion, kind, namespace, name, uid },
        type: 'Warning',
        action: 'Judge',
        reason: 'ChangeHeld',
        note: `change ${position} waits: ${why}; approve it with: sluice approve ${position}`,
      } as const,
    ]
  })
}

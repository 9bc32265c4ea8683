/** What is kept out of force at a moment: by a pin, and by `changeProtection`. */
import { stringify } from 'yaml'
import { newestGeneration } from '../../src/control/desired/object-state.ts'
import { type ObjectKey, type ObjectRef, objectKey } from '../../src/ground/model/names.ts'
import { objectsThatWait } from '../../src/past/explain/held-changes.ts'
import { waitingObjects } from '../../src/past/explain/pin-text.ts'
import type { Fold } from '../../src/past/replay/index.ts'
import type { Moment } from '../log/loaded-log.ts'
import { type DiffLine, lineDiff } from './line-diff.ts'

/** What the banner shows; undefined if no pin is set and no change waits. */
export const heldModel = ({ held }: Moment) => held

/** Maximum number of objects whose manifests are compared: of a pin, of each change, and not judged yet. */
const maxCompared = 100

/** The manifests that wait, compared with those in force. It is slow for earlier moments. */
export function waitingModel(moment: Moment) {
  const { held } = moment
  if (held === undefined) return undefined
  const fold = moment.fold()
  const { heldBack, changes } = fold
  const pinned = waitingObjects(fold, maxCompared).map((one) =>
    compared(fold, one, heldBack.get(objectKey(one))),
  )
  const waiting = (objects: readonly ObjectRef[]) =>
    objects
      .slice(0, maxCompared)
      .map((one) => compared(fold, one, changes.waiting.get(objectKey(one))?.newest))
  return {
    ...held,
    waiting: pinned,
    changes: held.changes.map((change) => ({
      ...change,
      count: change.objects.length,
      objects: waiting(change.objects),
    })),
    unjudgedObjects: waiting(objectsThatWait(fold, (position) => position === undefined)),
  }
}

type Newest = NonNullable<ReturnType<Fold['heldBack']['get']>>

/** The newest version of an object, compared with the one in force. */
function compared(fold: Fold, one: ObjectRef, version: Newest | undefined) {
  const key: ObjectKey = objectKey(one)
  const inForce = fold.graph.object(key)
  const newest = version?.context.state
  const lines: DiffLine[] = lineDiff(textOf(inForce?.object), textOf(newest?.object))
  return {
    object: key,
    inForce: inForce?.generation ?? null,
    newest: newestGeneration(newest) ?? null,
    lines,
    problems: newest?.refused?.problems ?? [],
  }
}

const textOf = (object: unknown): string =>
  object === undefined ? '' : stringify(object, { lineWidth: 0, sortMapEntries: true })

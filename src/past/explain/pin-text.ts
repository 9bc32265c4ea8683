import type { PinState } from '../../control/actors/pin.ts'
import { newestGeneration, waitsText } from '../../control/desired/object-state.ts'
import { type ObjectRef, objectText, parseObjectKey } from '../../ground/model/names.ts'
import type { Fold } from '../replay/index.ts'

/** Says what a pin holds, since when, and why. */
export function pinText({ to, since, until, only, author, reason }: PinState): string {
  const what = only === undefined ? 'the configuration' : only.map(objectText).join(', ')
  const end = until === undefined ? '' : ` until ${until}`
  return `held: ${what} of position ${to}, since ${since}${end} (${author}: ${reason})`
}

/** An object of which a pin holds another version than the newest. */
export interface WaitingObject extends ObjectRef {
  /** Generation in force; null if the object is not in force. */
  readonly inForce: number | null
  /** Generation that waits; null if the deletion of the object waits. */
  readonly newest: number | null
}

/** The objects that wait until the pin is lifted; at most `most`. */
export function waitingObjects(fold: Fold, most = Number.POSITIVE_INFINITY): WaitingObject[] {
  const waiting: WaitingObject[] = []
  for (const [key, { context }] of fold.heldBack) {
    if (waiting.length >= most) break
    waiting.push({
      ...parseObjectKey(key),
      inForce: fold.graph.object(key)?.generation ?? null,
      newest: newestGeneration(context.state) ?? null,
    })
  }
  return waiting
}

export function waitingText({ inForce, newest }: Omit<WaitingObject, keyof ObjectRef>): string {
  const now = inForce === null ? 'not in force' : `generation ${inForce} in force`
  return `${now}, ${waitsText(newest)}`
}

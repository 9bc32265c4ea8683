/** The pin that is set at a moment, and what waits for its end. */
import { stringify } from 'yaml'
import { type ObjectKey, objectKey } from '../../src/ground/model/names.ts'
import { waitingObjects } from '../../src/past/explain/pin-text.ts'
import type { Moment } from '../log/loaded-log.ts'
import { type DiffLine, lineDiff } from './line-diff.ts'

/** What the banner shows; undefined if no pin is set. */
export const heldModel = ({ held }: Moment) => held

/** Maximum number of waiting objects whose manifests are compared. */
const maxCompared = 100

/** The manifests that wait, compared with those in force. It is slow for earlier moments. */
export function waitingModel(moment: Moment) {
  if (moment.held === undefined) return undefined
  const fold = moment.fold()
  const waiting = waitingObjects(fold, maxCompared).map((one) => {
    const key = objectKey(one)
    const inForce = fold.graph.object(key)
    const newest = fold.heldBack.get(key)?.context.state
    const lines: DiffLine[] = lineDiff(textOf(inForce?.object), textOf(newest?.object))
    const problems = newest?.refused?.problems ?? []
    return { object: key as ObjectKey, inForce: one.inForce, newest: one.newest, lines, problems }
  })
  return { ...moment.held, waiting }
}

const textOf = (object: unknown): string =>
  object === undefined ? '' : stringify(object, { lineWidth: 0, sortMapEntries: true })

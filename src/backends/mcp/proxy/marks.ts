/** Ids of events of several targets, which lead back to the target that can resume from them. */
import { isPair } from '../lists.ts'
import type { EventMark } from './answer-reader.ts'

export function clientMark(target: string, mark: EventMark | undefined): EventMark | undefined {
  if (mark?.id === undefined) return mark
  return { ...mark, id: writePositions([[target, mark.id]]) }
}

/** Last events of targets, in one id. */
export function writePositions(positions: Iterable<readonly [string, string]>): string {
  return Buffer.from(JSON.stringify([...positions])).toString('base64url')
}

/** Last events by target; empty where the id is none that the gateway has written. */
export function readPositions(id: string): ReadonlyMap<string, string> {
  try {
    const pairs: unknown = JSON.parse(Buffer.from(id, 'base64url').toString())
    return Array.isArray(pairs) && pairs.every(isPair) ? new Map(pairs) : new Map()
  } catch {
    return new Map()
  }
}

/** Stands among positions for a stream of all servers; one of a request has but its own. */
export const streamKey = ''

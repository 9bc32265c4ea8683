/**
 * Recognizes content that may be the first part of a file whose writer has not finished: copies and
 * `rsync --inplace` write a file piece by piece, and may pause for any time in between.
 */
import { isObject } from '../../ground/base/json-object.ts'
import type { ObjectClaim } from './observed.ts'

/** What is known about the content of a file. */
export interface WrittenContent {
  readonly claims: readonly ObjectClaim[]
  /** Whether the last line is complete. */
  readonly endsLine: boolean
}

export const endsLine = (content: Uint8Array): boolean => content.at(-1) === 0x0a

/** Whether the new content lacks any of the objects. */
export function losesObjects(
  before: readonly ObjectClaim[],
  after: readonly ObjectClaim[],
): boolean {
  const keys = new Set(after.map(({ key }) => key))
  return before.some(({ key }) => !keys.has(key))
}

/**
 * Whether new content may end too early: it lacks objects, its last object is no longer valid or lacks fields or
 * items, or its last line has no end although the last line of the earlier content had one.
 */
export function mayBeUnfinished(before: WrittenContent, after: WrittenContent): boolean {
  if (losesObjects(before.claims, after.claims)) return true
  if (before.endsLine && !after.endsLine) return true
  const last = after.claims.at(-1)
  const earlier = before.claims.find(({ key }) => key === last?.key)
  if (last === undefined || earlier?.content.state !== 'valid') return false
  if (last.content.state !== 'valid') return last.content.state === 'refused'
  return losesFields(earlier.content.object, last.content.object)
}

/** Objects of manifests are not nested deeply, so that recursion is safe. */
function losesFields(before: unknown, after: unknown): boolean {
  if (before === null || before === undefined) return false
  if (after === null || after === undefined) return true
  if (Array.isArray(before)) {
    if (!Array.isArray(after)) return false
    return before.length > after.length || before.some((item, at) => losesFields(item, after[at]))
  }
  if (!isObject(before) || !isObject(after)) return false
  return Object.entries(before).some(([name, value]) => losesFields(value, after[name]))
}

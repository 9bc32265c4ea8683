/** Names the fields in which two versions of an object differ. */
import { isDeepStrictEqual } from 'node:util'
import { isObject } from '../../ground/base/json-object.ts'

const maxChanges = 3

/** Returns texts such as `spec.rules[2] was removed`. Only the first few differences are named. */
export function specChanges(path: string, before: unknown, after: unknown): string[] {
  const all = [...changesAt(path, before, after)]
  const more = all.length > maxChanges ? [`${all.length - maxChanges} more fields changed`] : []
  return [...all.slice(0, maxChanges), ...more]
}

function* changesAt(path: string, before: unknown, after: unknown): Iterable<string> {
  if (isDeepStrictEqual(before, after)) return
  if (before === undefined) yield `${path} was added`
  else if (after === undefined) yield `${path} was removed`
  else if (Array.isArray(before) && Array.isArray(after)) yield* itemChanges(path, before, after)
  else if (isObject(before) && isObject(after)) {
    for (const field of new Set([...Object.keys(before), ...Object.keys(after)])) {
      yield* changesAt(`${path}.${field}`, before[field], after[field])
    }
  } else yield `${path} changed`
}

/** Skips the items that both lists share at the beginning and at the end, and compares the others. */
function* itemChanges(
  path: string,
  before: readonly unknown[],
  after: readonly unknown[],
): Iterable<string> {
  const shorter = Math.min(before.length, after.length)
  let first = 0
  while (first < shorter && isDeepStrictEqual(before[first], after[first])) first++
  let same = 0
  while (same < shorter - first && isDeepStrictEqual(before.at(-1 - same), after.at(-1 - same))) {
    same++
  }
  const removed = before.slice(first, before.length - same)
  const added = after.slice(first, after.length - same)
  const pairs = Math.min(removed.length, added.length)
  for (let at = 0; at < Math.max(removed.length, added.length); at++) {
    const item = `${path}[${first + at}]`
    if (at < pairs) yield* changesAt(item, removed[at], added[at])
    else yield at < removed.length ? `${item} was removed` : `${item} was added`
  }
}

/**
 * Histories of conversations that are not translated. Earlier responses may have been translated from another
 * provider, and this provider would reject their ids, thinking and signatures.
 */

import type { RefusalRules, StringCheck } from '../../json/scanner.ts'
import { field, isObject, type JsonObject, stringAt, withFields } from '../json/json.ts'
import { fittedId } from './tool-labels.ts'

export interface History {
  /** Returns the body with a history that the provider accepts; the same object if nothing changes. */
  settle(body: JsonObject): JsonObject
  /** `settle` does not change bodies that pass these rules. */
  readonly rules: RefusalRules
}

/** Maps the objects of a list in a field; removes objects for which `map` returns undefined. */
export function withList<Holder extends JsonObject>(
  holder: Holder,
  name: string,
  map: (element: JsonObject) => JsonObject | undefined,
): Holder {
  const list = field(holder, name)
  if (!Array.isArray(list)) return holder
  let changed: unknown[] | undefined
  for (const [at, element] of list.entries()) {
    const mapped = isObject(element) ? map(element) : element
    if (mapped !== element && changed === undefined) changed = list.slice(0, at)
    if (mapped !== undefined) changed?.push(mapped)
  }
  return changed === undefined ? holder : { ...holder, [name]: changed }
}

export function withId(holder: JsonObject, name: string, maxLength: number): JsonObject {
  const id = stringAt(holder, name)
  return id === undefined ? holder : withFields(holder, { [name]: fittedId(id, maxLength) })
}

/** Accepts ids that need not be changed. */
export const idCheck =
  (maxLength: number): StringCheck =>
  (bytes, start, end) => {
    if (end - start > maxLength) return false
    const id = bytes.toString('latin1', start, end)
    return fittedId(id, maxLength) === id
  }

/** What proxies refuse of an object, as a condition of the object. */
import type { DecidedCondition } from '../../model/conditions.ts'
import { type ObjectRef, objectKey } from '../../model/names.ts'
import { conditionFalse, elsewhere } from '../conditions.ts'
import type { Reader } from '../graph.ts'

/**
 * `Programmed` False with the proxy and the reason where a proxy does not have all of the object in
 * force; no condition else. Gateway API gives routes and policies no such condition, so it is there
 * for as long as it has something to say.
 */
export function rejectedConditions(
  ref: ObjectRef,
  generation: number,
  read: Reader,
): DecidedCondition[] {
  const message = read.fact<string>(`refused:${objectKey(ref)}`)
  if (message === undefined) return []
  return [conditionFalse('Programmed', 'Rejected', generation, message, elsewhere.own)]
}

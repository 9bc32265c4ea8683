/** The condition for what proxies reject of an object. */
import type { DecidedCondition } from '../../../ground/model/conditions.ts'
import { type ObjectRef, objectKey } from '../../../ground/model/names.ts'
import { conditionFalse, notOwn } from '../conditions.ts'
import type { Reader } from '../graph.ts'

/**
 * Returns `Programmed` False, with the proxy and its reason, if a proxy rejects a part of the object.
 * Otherwise returns no condition, since Gateway API defines none for routes and policies.
 */
export function rejectedConditions(
  ref: ObjectRef,
  generation: number,
  read: Reader,
): DecidedCondition[] {
  const message = read.input<string>(['refused', objectKey(ref)].join(':'))
  if (message === undefined) return []
  return [conditionFalse('Programmed', 'Rejected', generation, message, notOwn.own)]
}

/** Conditions that depend on proxies, if a state was read from manifests and no proxy was asked. */
import { isObject } from '../../../ground/base/json-object.ts'
import type { Condition } from '../../../ground/model/conditions.ts'

/** Reasons of `Programmed` that say what running proxies have not done yet. */
const fromProxies: ReadonlySet<string> = new Set([
  'Pending',
  'AddressNotAssigned',
  'AddressNotUsable',
])

const message = 'no gateway was asked; manifests alone do not say'

/** Whether the condition only says that proxies have not done something yet. */
export const isUnasked = ({ type, status, reason }: Condition): boolean =>
  type === 'Programmed' && status === 'False' && fromProxies.has(reason)

const asked = (condition: Condition): Condition =>
  isUnasked(condition)
    ? { ...condition, status: 'Unknown', reason: 'NotAsked', message }
    : condition

/** A status in which conditions that depend on proxies are Unknown instead of False. */
export function withUnaskedProxies<Status>(status: Status): Status {
  if (!isObject(status)) return status
  const { conditions, listeners } = status
  return {
    ...status,
    ...(Array.isArray(conditions) && { conditions: conditions.map(asked) }),
    ...(Array.isArray(listeners) && { listeners: listeners.map(withUnaskedProxies) }),
  }
}

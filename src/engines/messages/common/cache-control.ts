/** `cache_control`, with which clients mark what the provider should cache. */
import type { CacheLifetime } from '../chat.ts'
import { objectAt, stringAt } from '../json/json.ts'

/** Returns the lifetime that a part, a message, a tool or a request asks for; undefined if it asks for no cache. */
export function cacheOf(holder: unknown): CacheLifetime | undefined {
  const control = objectAt(holder, 'cache_control')
  if (control === undefined) return undefined
  return stringAt(control, 'ttl') === '1h' ? '1h' : '5m'
}

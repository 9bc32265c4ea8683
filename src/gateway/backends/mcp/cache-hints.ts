/** Cache hints of results in the modern era (2026-07-28, caching). */
import { type JsonNode, jsonValue, member, textOf } from './json/node.ts'

export interface CacheHints {
  readonly ttlMs: number
  /** May the result be shared by clients with different credentials? */
  readonly isPublic: boolean
}

/** Returns the hints of a result. A result without hints must not be cached or shared. */
export function hintsOf(text: string, result: JsonNode | undefined): CacheHints {
  const node = member(result, 'ttlMs')
  const ttlMs = node?.type === 'number' ? (jsonValue(text, node) as number) : 0
  const isPublic = textOf(text, member(result, 'cacheScope')) === 'public'
  return { ttlMs: ttlMs > 0 ? Math.floor(ttlMs) : 0, isPublic }
}

/**
 * Returns the members with the hints of a joined result: the shortest time, and public only if every part is.
 * A partial result must not be cached, because the other parts may be back at any time.
 */
export function hintsText(parts: readonly CacheHints[], isPartial: boolean): string {
  const ttlMs = isPartial || parts.length === 0 ? 0 : Math.min(...parts.map((part) => part.ttlMs))
  const isPublic = parts.length > 0 && parts.every((part) => part.isPublic)
  return `"ttlMs":${ttlMs},"cacheScope":"${isPublic ? 'public' : 'private'}"`
}

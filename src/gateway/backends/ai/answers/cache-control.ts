/** Reads what a client asks of the cache of answers (RFC 9111 section 5.2.1). */
import type { HeaderFields } from '../../../../ground/exchange/exchange.ts'

/**
 * Header with which a client opts out: `off` neither reads nor stores, and `exact` gets no answer to a similar request.
 * All other values mean `off`, so that no mistake lets a stored answer be served. It is not sent to providers.
 */
const optOutHeader = 'x-sluice-cache'

export interface CacheDirectives {
  /** Whether a stored answer may be served. */
  readonly mayServe: boolean
  /** Whether the answer to a similar request may be served. */
  readonly mayServeSimilar: boolean
  /** Whether the new answer may be stored. */
  readonly mayStore: boolean
  /** Whether the request fails unless an answer is stored. */
  readonly isOnlyCached: boolean
  /** Maximum age of a stored answer in milliseconds. */
  readonly maxAgeMs: number
  /** How long a stored answer must still be fresh, in milliseconds. */
  readonly minFreshMs: number
}

const noDirectives: CacheDirectives = {
  mayServe: true,
  mayServeSimilar: true,
  mayStore: true,
  isOnlyCached: false,
  maxAgeMs: Number.POSITIVE_INFINITY,
  minFreshMs: 0,
}

const noCache: CacheDirectives = { ...noDirectives, mayServe: false, mayStore: false }

/**
 * Reads Cache-Control, and removes the opt-out header. If a directive is repeated or unreadable, its strictest meaning
 * applies, as RFC 9111 advises. `Pragma: no-cache` is read only if there is no Cache-Control.
 */
export function readCacheDirectives(headers: HeaderFields): CacheDirectives {
  if (!headers.has(optOutHeader)) return readCacheControl(headers)
  const optOuts = headers.getAll(optOutHeader)
  headers.remove(optOutHeader)
  const isExact = optOuts.every((value) => value.trim().toLowerCase() === 'exact')
  return isExact ? { ...readCacheControl(headers), mayServeSimilar: false } : noCache
}

function readCacheControl(headers: HeaderFields): CacheDirectives {
  if (!headers.has('cache-control')) {
    if (!headers.has('pragma')) return noDirectives
    const isPragma = headers.getAll('pragma').some((value) => /\bno-cache\b/i.test(value))
    return isPragma ? { ...noDirectives, mayServe: false } : noDirectives
  }
  const directives = directivesOf(headers.getAll('cache-control').join(','))
  const isStoreRefused = directives.has('no-store')
  return {
    ...noDirectives,
    mayServe: !isStoreRefused && !directives.has('no-cache'),
    mayStore: !isStoreRefused,
    isOnlyCached: directives.has('only-if-cached'),
    maxAgeMs: Math.min(...secondsOf(directives, 'max-age', 0)) * 1_000,
    minFreshMs: Math.max(0, ...secondsOf(directives, 'min-fresh', Infinity)) * 1_000,
  }
}

/** Returns whether a provider forbids storing its response. */
export const forbidsStoring = (headers: HeaderFields): boolean =>
  directivesOf(headers.getAll('cache-control').join(',')).has('no-store')

/** Returns the values of each directive. The value of a directive without one is an empty text. */
function directivesOf(text: string): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>()
  for (const part of text.split(',')) {
    const [name = '', value = ''] = part.split('=', 2)
    const key = name.trim().toLowerCase()
    const values = found.get(key) ?? []
    values.push(value.trim().replaceAll('"', ''))
    found.set(key, values)
  }
  return found
}

/** Returns the values of a directive in seconds. An unreadable value becomes `fallback`. */
const secondsOf = (
  directives: ReturnType<typeof directivesOf>,
  name: string,
  fallback: number,
): readonly number[] =>
  (directives.get(name) ?? []).map((text) => (/^\d+$/.test(text) ? Number(text) : fallback))

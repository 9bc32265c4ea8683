/** Reads what a client asks of the cache of answers (RFC 9111 section 5.2.1). */
import type { HeaderFields } from '../../../../ground/exchange/exchange.ts'

/** Header with which a client opts out: `off` neither reads nor stores. It is not sent to providers. */
const optOutHeader = 'x-sluice-cache'

export interface CacheDirectives {
  /** Whether a stored answer may be served. */
  readonly mayServe: boolean
  /** Whether the new answer may be stored. */
  readonly mayStore: boolean
  /** Whether the request fails unless an answer is stored. */
  readonly isOnlyCached: boolean
  /** Maximum age of a stored answer in milliseconds. */
  readonly maxAgeMs: number
}

const noDirectives: CacheDirectives = {
  mayServe: true,
  mayStore: true,
  isOnlyCached: false,
  maxAgeMs: Number.POSITIVE_INFINITY,
}

const noCache: CacheDirectives = { ...noDirectives, mayServe: false, mayStore: false }

/** Reads Cache-Control, and removes the opt-out header. An unreadable `max-age` is 0, as RFC 9111 advises. */
export function readCacheDirectives(headers: HeaderFields): CacheDirectives {
  const optOut = headers.get(optOutHeader)
  if (optOut !== undefined) headers.remove(optOutHeader)
  if (optOut?.trim().toLowerCase() === 'off') return noCache
  const fields = headers.getAll('cache-control')
  if (fields.length === 0) return noDirectives
  const directives = directivesOf(fields.join(','))
  const age = directives.get('max-age')
  const isStoreRefused = directives.has('no-store')
  return {
    mayServe: !isStoreRefused && !directives.has('no-cache'),
    mayStore: !isStoreRefused,
    isOnlyCached: directives.has('only-if-cached'),
    maxAgeMs: age === undefined ? Number.POSITIVE_INFINITY : secondsOf(age) * 1_000,
  }
}

/** Returns whether a provider forbids storing its response. */
export const forbidsStoring = (headers: HeaderFields): boolean =>
  directivesOf(headers.getAll('cache-control').join(',')).has('no-store')

function directivesOf(text: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>()
  for (const part of text.split(',')) {
    const [name = '', value = ''] = part.split('=', 2)
    found.set(name.trim().toLowerCase(), value.trim().replaceAll('"', ''))
  }
  return found
}

const secondsOf = (text: string): number => (/^\d+$/.test(text) ? Number(text) : 0)

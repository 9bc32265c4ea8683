/** The keys of an issuer, as a policy finds them when it is compiled. */
import { type KeySet, readKeySet } from '../../auth/jwt/key-set.ts'
import { parseDurationMs } from '../../base/duration.ts'
import type { References } from '../../model/references.ts'
import type { RemoteJwks } from '../../schema/shapes/authentication.ts'

/** What was found in the place of an issuer's keys. */
export interface FoundKeys {
  readonly keys: KeySet['keys']
  /** Nothing can be verified. */
  readonly failure?: string
  /** Why there are none yet, where that is no fault. */
  readonly pending?: string
  /** What was left out of the set. */
  readonly skipped?: readonly string[]
}

/** As long as a Duration that is left out lasts. */
const defaultCacheMs = 300_000

/** Asks for keys to be fetched, and gives those that have been. */
export function fetchedKeys(
  { jwksPath, cacheDuration, backendRef }: RemoteJwks,
  references: References,
): FoundKeys {
  const cacheMs = cacheDuration === undefined ? defaultCacheMs : parseDurationMs(cacheDuration)
  const found = references.keySet({
    backendRef,
    path: jwksPath,
    cacheMs: cacheMs ?? defaultCacheMs,
  })
  if (typeof found === 'string') return { keys: [], failure: found }
  if (found.isPending) {
    return {
      keys: [],
      pending: `keys are pending: a running gateway fetches them from ${found.uri}`,
    }
  }
  if (found.keySet === undefined) {
    return { keys: [], failure: `no keys have been fetched from ${found.uri} yet` }
  }
  return usable(readKeySet(found.keySet), `the key set of ${found.uri}`)
}

/** Keys of a set that was read; `label` is what messages call the set. */
export function usable(set: KeySet | string, label: string): FoundKeys {
  if (typeof set === 'string') return { keys: [], failure: `${label} ${set}` }
  const { keys, skipped } = set
  if (keys.length > 0) return { keys, skipped }
  const why = skipped.length === 0 ? '' : ` (${skipped.join('; ')})`
  return { keys, failure: `${label} has no key that can verify${why}` }
}

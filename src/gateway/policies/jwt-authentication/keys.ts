import { type KeySet, readKeySet } from '../../../engines/auth/jwt/key-set.ts'
import { parseDurationMs } from '../../../ground/base/duration.ts'
import { keySetText } from '../../../ground/model/key-sets.ts'
import type { References } from '../../../ground/model/references.ts'
import type { RemoteJwks } from '../../../ground/schema/shapes/authentication.ts'

/** The keys of an issuer, as far as they are known when a policy is compiled. */
export interface FoundKeys {
  readonly keys: KeySet['keys']
  /** Set if no token can be verified: the reason. */
  readonly failure?: string
  /** Set if the keys are not known yet and this is not a failure: the reason. */
  readonly pending?: string
  /** The reasons why single keys of the set were left out. */
  readonly skipped?: readonly string[]
}

/** Default of `cacheDuration` in milliseconds. */
const defaultCacheMs = 300_000

/** Requests that the keys are fetched, and returns the last fetched ones. */
export function fetchedKeys(
  { jwksPath, cacheDuration, backendRef }: RemoteJwks,
  references: References,
): FoundKeys {
  const cacheMs = parseDurationMs(cacheDuration) ?? defaultCacheMs
  const found = references.keySet({ backendRef, path: jwksPath, cacheMs })
  if (typeof found === 'string') return { keys: [], failure: found }
  const text = keySetText(found.uri)
  if (found.isPending) {
    const pending = `keys are pending: a running gateway fetches them from ${text}`
    return { keys: [], pending }
  }
  if (found.keySet === undefined) {
    return { keys: [], failure: `no keys have been fetched from ${text} yet` }
  }
  return usable(readKeySet(found.keySet), `the key set of ${text}`)
}

/** The usable keys of a set. `label` is the name of the set in messages. */
export function usable(set: KeySet | string, label: string): FoundKeys {
  if (typeof set === 'string') return { keys: [], failure: `${label} ${set}` }
  const { keys, skipped } = set
  if (keys.length > 0) return { keys, skipped }
  const why = skipped.length === 0 ? '' : ` (${skipped.join('; ')})`
  return { keys, failure: `${label} has no key that can verify${why}` }
}

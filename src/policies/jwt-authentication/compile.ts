import { type KeySet, parseKeySet, readKeySet } from '../../auth/jwt/key-set.ts'
import type { JwtProvider } from '../../auth/jwt/verifier.ts'
import { parseDurationMs } from '../../base/duration.ts'
import type { References } from '../../model/references.ts'
import type { Compiled, PolicyProblem } from '../define.ts'
import type { JwtAuthenticationConfig } from './config.ts'
import type { JwtAuthenticationSpec } from './schema.ts'

type ProviderSpec = JwtAuthenticationSpec['providers'][number]
type RemoteSpec = NonNullable<ProviderSpec['jwks']['remote']>

/** What was found in the place of a provider's keys. */
interface FoundKeys {
  readonly keys: KeySet['keys']
  /** The provider can verify nothing. */
  readonly failure?: string
  /** What was left out of the set. */
  readonly skipped?: readonly string[]
}

/**
 * A provider without usable keys stays, and nothing is believed of it; the others work. The policy
 * is always in force: Strict refuses everyone where no provider has a key, and the status says why.
 */
export function compile(
  { mode = 'Strict', providers }: JwtAuthenticationSpec,
  references: References,
): Compiled<JwtAuthenticationConfig> {
  const problems: PolicyProblem[] = []
  const compiled = providers.map(({ issuer, audiences, jwks }, index): JwtProvider => {
    const path = `providers[${index}].jwks.${jwks.remote === undefined ? 'inline' : 'remote'}`
    const { keys, failure, skipped = [] } = findKeys(jwks, references)
    if (failure !== undefined) {
      const message = `${failure}; no token of ${issuer} is accepted`
      problems.push({ path, message, ...(providers.length > 1 && { partial: true }) })
    }
    for (const message of skipped) problems.push({ path, message, partial: true })
    return { issuer, ...(audiences && { audiences }), keys }
  })
  const isUsable = compiled.some(({ keys }) => keys.length > 0)
  if (!isUsable && providers.length > 1) {
    problems.push({ path: 'providers', message: 'none has a key; no token is accepted' })
  }
  return { config: { mode, providers: compiled }, problems, protects: true }
}

function findKeys({ inline, remote }: ProviderSpec['jwks'], references: References): FoundKeys {
  if (remote !== undefined) return fetchedKeys(remote, references)
  return usable(parseKeySet(inline ?? ''), 'the key set')
}

/** As long as a Duration that is left out lasts. */
const defaultCacheMs = 300_000

function fetchedKeys(remote: RemoteSpec, references: References): FoundKeys {
  const { jwksPath, cacheDuration, backendRef } = remote
  const cacheMs = cacheDuration === undefined ? defaultCacheMs : parseDurationMs(cacheDuration)
  const found = references.keySet({
    backendRef,
    path: jwksPath,
    cacheMs: cacheMs ?? defaultCacheMs,
  })
  if (typeof found === 'string') return { keys: [], failure: found }
  if (found.keySet === undefined) {
    return { keys: [], failure: `no keys have been fetched from ${found.uri} yet` }
  }
  return usable(readKeySet(found.keySet), `the key set of ${found.uri}`)
}

function usable(set: KeySet | string, label: string): FoundKeys {
  if (typeof set === 'string') return { keys: [], failure: `${label} ${set}` }
  const { keys, skipped } = set
  if (keys.length > 0) return { keys, skipped }
  const why = skipped.length === 0 ? '' : ` (${skipped.join('; ')})`
  return { keys, failure: `${label} has no key that can verify${why}` }
}

/** Why the source of a controller is not all that it should be, for the health. */
import type { KubernetesSource } from '../../watch/kubernetes/source.ts'

/** Kinds that were not listed yet, with reasons; undefined once all were. */
export function listingProblem(source: KubernetesSource): string | undefined {
  const missing = source.missing()
  if (missing.length === 0) return undefined
  return missing.map(({ kind, reason }) => `${kind.plural}: ${reason}`).join('; ')
}

/** Undefined while any watch is heard. */
export function watchProblem(source: KubernetesSource): string | undefined {
  const isHeard = source.states().some(({ state }) => state === 'following' || state === 'listing')
  return isHeard ? undefined : 'no watch of the API server works'
}

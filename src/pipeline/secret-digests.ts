/** Which secret values the observed objects still name. */
import type { Fold } from '../actors/fold.ts'
import type { SecretFacts } from '../desired/shapes.ts'

/** Digests of the entries of every Secret, as the fold knows them. */
export function secretDigests(fold: Fold): Set<string> {
  const digests = new Set<string>()
  for (const { ref, object } of fold.graph.objects()) {
    if (ref.kind !== 'Secret' || object === undefined) continue
    const { entries } = object.facts as SecretFacts
    for (const { digest } of Object.values(entries)) digests.add(digest)
  }
  return digests
}

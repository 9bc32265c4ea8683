/** Which secret values the observed objects still name. */
import type { Fold } from '../actors/fold.ts'
import type { SecretFacts } from '../desired/shapes.ts'
import type { SecretStore } from '../effects/secret-store.ts'
import { sessionKeyRef } from '../model/mcp-targets.ts'
import type { DigestKey } from '../watch/digest-key.ts'

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

/**
 * The key of MCP session ids, made from the key of digests: whoever shares that one, as replicas of a
 * controller do and a run does with the next one, carries on the same sessions.
 */
export function keepSessionKey(secrets: SecretStore, key: DigestKey): void {
  secrets.keepAlways(sessionKeyRef.digest, key.derive('MCP sessions'))
}

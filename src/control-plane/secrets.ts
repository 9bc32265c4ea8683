/** Which secret values the observed objects still name. */
import type { SecretFacts } from '../../events/index.ts'
import type { Fold } from '../actors/fold.ts'
import { SecretStore } from '../effects/secret-store.ts'
import { sessionKeyRef } from '../model/mcp-targets.ts'
import type { DesiredDelta } from '../model/resources.ts'
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
 * A store of secret values. Values that arrive after what refers to them go to `publish` on their own.
 * The key of MCP session ids is derived from the key of digests: replicas that share that key, and the
 * next run, continue the same sessions.
 */
export function openSecretStore(
  key: DigestKey,
  publish: (late: DesiredDelta) => void,
): SecretStore {
  const secrets = new SecretStore(() => {
    const late = secrets.late()
    if (late !== undefined) publish(late)
  })
  secrets.keepAlways(sessionKeyRef.digest, key.derive('MCP sessions'))
  return secrets
}

import type { SecretMetadata } from '../../events/index.ts'
import type { Fold } from '../actors/fold.ts'
import { SecretStore } from '../effects/secret-store.ts'
import { sessionKeyRef } from '../model/mcp-targets.ts'
import type { DesiredDelta } from '../model/resources.ts'
import type { DigestKey } from '../watch/digest-key.ts'

/** Digests of the entries of every Secret in the fold. */
export function secretDigests(fold: Fold): Set<string> {
  const digests = new Set<string>()
  for (const { ref, object } of fold.graph.objects()) {
    if (ref.kind !== 'Secret' || object === undefined) continue
    const { entries } = object.facts as SecretMetadata
    for (const { digest } of Object.values(entries)) digests.add(digest)
  }
  return digests
}

/**
 * Opens a store of secret values. A value that arrives after the resources that refer to it is published on
 * its own. The key of MCP session ids is derived from the key of digests: replicas that share that key, and
 * the next run, continue the same sessions.
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

import type { SecretMetadata, SluiceEvent } from '../../../events/index.ts'
import { sessionKeyRef } from '../../ground/model/mcp-targets.ts'
import type { Fold } from '../actors/fold.ts'
import { SecretStore } from '../effects/secret-store.ts'
import type { DigestKey } from '../watch/digest-key.ts'
import type { ControlPlaneParts, ResourceSource } from './parts.ts'

/** Digests of the entries of every Secret in the fold. */
function secretDigests(fold: Fold): Set<string> {
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
 * its own. If a published resource refers to a missing value, the source observes its object again. The key of MCP session ids is derived from the key of digests: replicas that share that key, and
 * the next run, continue the same sessions.
 */
export function openSecretStore(key: DigestKey, parts: () => ControlPlaneParts): SecretStore {
  const secrets = new SecretStore({
    onArrival: () => {
      const late = secrets.late()
      if (late !== undefined) parts().channel.publish(late)
    },
    onMissing: (digests) => parts().source.observeAgain(digests),
  })
  secrets.keepAlways(sessionKeyRef.digest, key.derive('MCP sessions'))
  return secrets
}

/**
 * Removes secret values that are no longer used, after a Secret has changed. It waits until all observations that
 * this replica has appended are folded, since they may refer to values that neither the source nor the fold has now.
 */
export class SecretCollector {
  readonly #store: SecretStore
  readonly #fold: Fold
  #isDue = false
  #appending = 0
  #appendedUpTo = 0

  constructor(store: SecretStore, fold: Fold) {
    this.#store = store
    this.#fold = fold
  }

  /** Must be called with each event that is read. */
  note({ data }: SluiceEvent): void {
    this.#isDue ||= 'kind' in data && data.kind === 'Secret'
  }

  /** Runs an append of observations, which returns their last position. */
  async during(append: () => Promise<number>): Promise<void> {
    this.#appending++
    try {
      this.#appendedUpTo = Math.max(this.#appendedUpTo, await append())
    } finally {
      this.#appending--
    }
  }

  /** Removes the values that neither the source nor the fold has, if that is due and possible now. */
  collect(source: Pick<ResourceSource, 'secretDigests'>): void {
    if (!this.#isDue || this.#appending > 0 || this.#fold.position < this.#appendedUpTo) return
    this.#isDue = false
    this.#store.retain(source.secretDigests().union(secretDigests(this.#fold)))
  }
}

/**
 * The state that the chosen proxies of a rollout get. A second fold derives it: it reads the same events, but has the
 * versions of the rollout in force. It exists only while a rollout is under way.
 */
import type { Diversion } from '../../../ground/model/diversion.ts'
import {
  type ResourceKey,
  secretRefsOf,
  secretResource,
  type VersionedResource,
} from '../../../ground/model/resources.ts'
import { Fold, type RecordedEvent } from '../../actors/fold.ts'
import { createGraph } from '../../desired/derivations.ts'
import { regexProblem } from '../api-binding.ts'
import type { ControlPlaneParts } from '../parts.ts'
import { isCompared } from './targets.ts'

interface CandidateOptions {
  /** The fold of the control plane. */
  readonly fold: Fold
  readonly parts: () => Pick<ControlPlaneParts, 'ledger' | 'targets'>
  readonly secretValue: (digest: string) => Uint8Array | undefined
}

export class Candidate {
  readonly #options: CandidateOptions
  #fold: Fold | undefined
  /** Position of the rollout that the fold is for. */
  #rollout = 0
  /** Digests of the secrets that were published, and of those whose values are not known yet. */
  readonly #secrets = new Set<string>()
  readonly #missing = new Set<string>()
  /** Budgets that only the candidate has. */
  readonly #budgets = new Set<ResourceKey>()

  constructor(options: CandidateOptions) {
    this.#options = options
  }

  /** Called after each event that was folded. */
  folded(recorded: RecordedEvent): void {
    this.#fold?.apply(recorded)
  }

  /** What the chosen proxies get; null after the end of a rollout, and undefined if there was none. */
  take(): Diversion | null | undefined {
    const isDiverted = this.#fold !== undefined
    return this.#diversion() ?? (isDiverted ? null : undefined)
  }

  /** Whether the chosen proxies get another version of a resource than the others. */
  readonly differs = (key: string): boolean => {
    const versionIn = (fold: Fold) =>
      fold.resources().find(({ resource }) => resource.key === key)?.version
    return this.#fold !== undefined && versionIn(this.#fold) !== versionIn(this.#options.fold)
  }

  #diversion(): Diversion | undefined {
    const { fold } = this.#options
    const { position = 0, steps = [], plans = [] } = fold.rollouts.running?.context ?? {}
    const proxies = steps.at(-1)?.proxies
    if (proxies === undefined) {
      this.#end()
      return undefined
    }
    const isNew = this.#fold === undefined || this.#rollout !== position
    if (isNew) this.#begin(position)
    const { upserted = [], removed = [] } = this.#fold?.takeChange().delta ?? {}
    this.#publishBudgets(upserted)
    const delta = {
      sequence: fold.position,
      upserted: [...this.#secretsFor(upserted), ...upserted],
      removed,
    }
    const chosen = new Set(proxies)
    const { targets } = this.#options.parts()
    const isKept = targets !== undefined && !isCompared(plans, targets, chosen)
    return { proxies: isKept ? new Set() : chosen, delta, isNew }
  }

  #begin(position: number): void {
    this.#end()
    this.#rollout = position
    this.#fold = candidateFold(this.#options.fold)
  }

  #end(): void {
    this.#fold = undefined
    this.#secrets.clear()
    this.#missing.clear()
    if (this.#budgets.size === 0) return
    const { fold, parts } = this.#options
    const kept = new Set(fold.resources().map(({ resource }) => resource.key))
    const removed = [...this.#budgets].filter((key) => !kept.has(key))
    parts().ledger?.publish({ sequence: fold.position, upserted: [], removed })
    this.#budgets.clear()
  }

  #secretsFor(resources: readonly VersionedResource[]): VersionedResource[] {
    for (const { resource } of resources) {
      for (const { digest } of secretRefsOf(resource)) {
        if (!this.#secrets.has(digest)) this.#missing.add(digest)
      }
    }
    return [...this.#missing].flatMap((digest) => {
      const value = this.#options.secretValue(digest)
      if (value === undefined) return []
      this.#missing.delete(digest)
      this.#secrets.add(digest)
      return [secretResource(digest, value)]
    })
  }

  /** The ledger learns new budgets, so that it can grant them. Those that exist change once they are in force. */
  #publishBudgets(upserted: readonly VersionedResource[]): void {
    const { fold, parts } = this.#options
    const budgets = upserted.filter(
      ({ resource }) => resource.type === 'policy' && resource.field === 'budgets',
    )
    if (budgets.length === 0) return
    const known = new Set(fold.resources().map(({ resource }) => resource.key))
    const added = budgets.filter(({ resource }) => !known.has(resource.key))
    for (const { resource } of added) this.#budgets.add(resource.key)
    parts().ledger?.publish({ sequence: fold.position, upserted: added, removed: [] })
  }
}

/** A fold with the versions of the running rollout in force. */
function candidateFold(fold: Fold): Fold {
  const candidate = new Fold(createGraph({ checkRegex: regexProblem }))
  candidate.restore(fold.snapshot())
  candidate.rollouts.becomeCandidate()
  candidate.graph.settle()
  return candidate
}

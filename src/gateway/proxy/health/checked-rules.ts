/** Finds the backends that active health checks probe, after each change of the configuration. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { RulePlacement } from '../config/placement.ts'
import { placementsOf } from '../config/port-table.ts'
import type { ConfigStore } from '../config/store.ts'
import type { BackendKinds } from '../request/backend-kind.ts'
import type { CheckedBackend } from '../upstream/checked-backend.ts'
import type { ActiveChecks } from './active-checks.ts'

/** Number of rules that are read before requests get a turn. */
const rulesPerTurn = 500

interface CheckedConfig {
  readonly config: ConfigStore
  readonly kinds: BackendKinds
}

export class HealthChecks {
  readonly #runtime: CheckedConfig
  readonly #checks: ActiveChecks
  #hasChecks = false
  /** Incremented by every change, so that older searches end. */
  #changes = 0

  constructor(runtime: CheckedConfig, checks: ActiveChecks) {
    this.#runtime = runtime
    this.#checks = checks
  }

  /** Must be called after each change set. */
  onConfigChange(): void {
    this.#changes++
    if (this.#runtime.config.policies.hasActiveChecks) {
      this.#hasChecks = true
      void this.#search(this.#changes)
    } else if (this.#hasChecks) {
      this.#hasChecks = false
      this.#checks.set([])
    }
  }

  async #search(change: number): Promise<void> {
    const found: CheckedBackend[] = []
    let rules = 0
    // Several change sets often follow each other.
    await nextTurn()
    for (const placement of placementsOf(this.#runtime.config.routes.values())) {
      if (++rules % rulesPerTurn === 0) await nextTurn()
      if (change !== this.#changes) return
      found.push(...this.#checkedOf(placement))
    }
    if (change === this.#changes) this.#checks.set(found)
  }

  #checkedOf(placement: RulePlacement): CheckedBackend[] {
    const { kinds } = this.#runtime
    return placement.rule.backends.flatMap((backend) => {
      try {
        const checked = kinds.of(backend)?.checked?.(placement, backend)
        const isChecked = checked?.settings.health?.active !== undefined
        return isChecked ? [checked] : []
      } catch {
        // Requests to the backend fail, too.
        return []
      }
    })
  }
}

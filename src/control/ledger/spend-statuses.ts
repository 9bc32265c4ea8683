/**
 * Decides which statuses of budgets are written, and with what. Spend changes with every request, so the writer gets
 * values that stay the same for a while: each budget at most every `intervalMs`, and few budgets at a time.
 */
import type { BudgetConfig } from '../../ground/model/budgets.ts'
import { type ObjectKey, objectKey } from '../../ground/model/names.ts'
import { spendStatus } from './balances.ts'
import type { LedgerChange, LedgerFold } from './ledger-fold.ts'

/** What is shown of one budget. */
type ShownBudget = Pick<BudgetConfig, 'id' | 'name' | 'each'>

interface SpendStatusesOptions {
  /** Minimum time between two statuses of a budget. */
  readonly intervalMs?: number
  /** Maximum number of statuses that are taken at once. */
  readonly most?: number
}

export class SpendStatuses {
  readonly #intervalMs: number
  readonly #most: number
  #shown: ReadonlyMap<string, ShownBudget> = new Map()
  /** Budgets that have changed since their status was taken; the oldest change is first. */
  readonly #changed = new Set<string>()
  readonly #taken = new Map<
    string,
    { readonly at: number; readonly status: ReturnType<typeof spendStatus> }
  >()

  constructor({ intervalMs = 10_000, most = 10 }: SpendStatusesOptions = {}) {
    this.#intervalMs = intervalMs
    this.#most = most
  }

  /** Replaces the budgets of the configuration. */
  configure(shown: ReadonlyMap<string, ShownBudget>): void {
    this.#shown = shown
    for (const id of this.#taken.keys()) if (!shown.has(id)) this.#taken.delete(id)
    this.noteAll()
  }

  note(changes: readonly LedgerChange[]): void {
    for (const { budget } of changes) this.#changed.add(budget)
  }

  /** Called when this replica begins to write statuses. */
  noteAll(): void {
    for (const id of this.#shown.keys()) this.#changed.add(id)
  }

  /** Takes the statuses that are due. Returns the keys of their objects. */
  take(fold: LedgerFold, times: { readonly now: number; readonly monotonic: number }): ObjectKey[] {
    const found: ObjectKey[] = []
    for (const id of [...this.#changed]) {
      if (found.length >= this.#most) break
      const { at = Number.NEGATIVE_INFINITY } = this.#taken.get(id) ?? {}
      if (times.monotonic - at < this.#intervalMs) continue
      this.#changed.delete(id)
      const shown = this.#shown.get(id)
      const budget = fold.budgets.get(id)
      if (shown === undefined || budget === undefined || budget.window === 0) continue
      const status = spendStatus(budget, shown.each, Math.max(times.now, fold.time))
      this.#taken.set(id, { at: times.monotonic, status })
      // What was spent leaves a rolling window without an event.
      if (budget.definition.window.type === 'Rolling' && status.spent !== '0') this.#changed.add(id)
      const [namespace = '', name = ''] = shown.name.split('/')
      found.push(objectKey({ kind: 'GatewayBudget', namespace, name }))
    }
    return found
  }

  /** The fields of the status of a budget, as they were taken last. */
  of(id: string): ReturnType<typeof spendStatus> | undefined {
    return this.#taken.get(id)?.status
  }
}

/** What the ledger knows of a budget. */
import type { BudgetConfig } from '../../ground/model/budgets.ts'
import type { BalanceSnapshot } from '../actors/budget.machine.ts'

export type BudgetDefinition = Pick<
  BudgetConfig,
  'id' | 'name' | 'generation' | 'unit' | 'amount' | 'overrides' | 'window'
>

export interface Share {
  readonly share: number
  readonly generation: number
}

export interface BudgetState {
  readonly id: string
  /** By generation; those that shares of the current window refer to, and the newest. */
  readonly definitions: Map<number, BudgetDefinition>
  definition: BudgetDefinition
  /** Number of the current window; 0 before the first. */
  window: number
  endsAt: number | undefined
  readonly balances: Map<string, BalanceSnapshot>
  /** What each holder may use of a value without a balance. */
  readonly shares: Map<string, readonly Share[]>
  /** All charges ever. */
  charged: bigint
  requests: number
}

/** What the ledger knows of a budget. */
import type { BudgetConfig } from '../../ground/model/budgets.ts'
import type { BalanceSnapshot } from '../actors/budget.machine.ts'
import type { FirstGrants } from '../actors/holdings.ts'

export interface BudgetDefinition
  extends Pick<
    BudgetConfig,
    'id' | 'name' | 'generation' | 'unit' | 'amount' | 'overrides' | 'window'
  > {
  /** Percentages in ascending order. */
  readonly softLimits?: readonly number[]
}

/** The part of a configured budget that the ledger needs. */
export function definitionOf(config: BudgetConfig): BudgetDefinition {
  const { id, name, generation, unit, amount, overrides, window, softLimits } = config
  const definition = { id, name, generation, unit, amount, overrides, window }
  if (softLimits === undefined) return definition
  return { ...definition, softLimits: softLimits.map(({ percent }) => percent) }
}

/** A soft limit that was reached. */
export interface BudgetWarning {
  /** Id of its event. */
  readonly id: string
  /** Id of the budget. */
  readonly budget: string
  /** `namespace/name` of the budget. */
  readonly name: string
  readonly unit: BudgetConfig['unit']
  readonly window: BudgetConfig['window']
  /** When the window ends; undefined if it is a rolling one. */
  readonly endsAt: number | undefined
  readonly value: string
  readonly percent: number
  readonly spent: bigint
  readonly limit: bigint
  /** Time of its event (RFC 3339). */
  readonly time: string
}

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
  /** What the present shares grant of a value with an override, and under `undefined` of all others. Computed when needed. */
  readonly first: Map<string | undefined, FirstGrants>
  /** All charges ever. */
  charged: bigint
  requests: number
}

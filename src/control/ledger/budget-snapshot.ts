/**
 * Budgets as snapshots have them: JSON with integers as text. Their places are known, so that no function has to look
 * at every value; there may be a hundred thousand balances.
 */
import type { BalanceSnapshot } from '../actors/budget.machine.ts'
import { FirstGrants, Holdings, noGrants } from '../actors/holdings.ts'
import type { BudgetDefinition, BudgetState, BudgetWarning, Share } from './budget-state.ts'

interface StoredHolding {
  readonly name: string
  readonly granted: string
  readonly charged: string
  readonly returned: string
  readonly isDrained: boolean
}

type StoredGrants = readonly (readonly [holder: string, amount: string])[]

interface StoredBalance {
  readonly name: string
  readonly state: BalanceSnapshot['value']
  readonly adjusted: string
  readonly requests: number
  readonly slices: readonly (readonly [slice: string, charged: string])[]
  /** Index in the first grants of the budget. */
  readonly first: number
  readonly holdings: readonly StoredHolding[]
  /** Omitted if there was no warning. */
  readonly warned?: readonly (readonly [percent: number, limit: string, at: number])[]
}

/** A budget in a snapshot. It is not checked, because only a fold of the same version reads it. */
export interface StoredBudget {
  readonly id: string
  readonly definitions: readonly BudgetDefinition[]
  /** Generation of the newest definition. */
  readonly generation: number
  readonly window: number
  readonly endsAt?: number
  readonly balances: readonly StoredBalance[]
  readonly first: readonly StoredGrants[]
  readonly shares: readonly (readonly [holder: string, shares: readonly Share[]])[]
  readonly charged: string
  readonly requests: number
}

export function storeBudget(budget: BudgetState): StoredBudget {
  const { id, definitions, definition, window, endsAt, charged, requests } = budget
  const first = new GrantsTable()
  return {
    id,
    definitions: [...definitions.values()],
    generation: definition.generation,
    window,
    ...(endsAt !== undefined && { endsAt }),
    balances: Array.from(budget.balances, ([name, balance]) =>
      storeBalance(name, balance, first.indexOf(balance.context.holdings.first)),
    ),
    first: first.rows,
    shares: [...budget.shares],
    charged: `${charged}`,
    requests,
  }
}

/** Equal grants are stored once, so that equal states have equal snapshots. */
class GrantsTable {
  readonly rows: StoredGrants[] = []
  readonly #known = new Map<FirstGrants, number>()
  readonly #byText = new Map<string, number>()

  indexOf(grants: FirstGrants): number {
    const known = this.#known.get(grants)
    if (known !== undefined) return known
    const row = Array.from(grants.byHolder, ([holder, amount]) => [holder, `${amount}`] as const)
    const text = JSON.stringify(row)
    const index = this.#byText.get(text) ?? this.rows.push(row) - 1
    this.#byText.set(text, index)
    this.#known.set(grants, index)
    return index
  }
}

function storeBalance(
  name: string,
  { value: state, context }: BalanceSnapshot,
  first: number,
): StoredBalance {
  const { adjusted, requests, slices, holdings } = context
  const warned = Object.entries(context.warned)
  return {
    ...(warned.length > 0 && {
      warned: warned.map(([percent, { limit, at }]) => [Number(percent), `${limit}`, at] as const),
    }),
    name,
    state,
    adjusted: `${adjusted}`,
    requests,
    slices: Object.entries(slices).map(([slice, charged]) => [slice, `${charged}`]),
    first,
    holdings: Array.from(
      holdings.changed,
      ([holder, { granted, charged, returned, isDrained }]): StoredHolding => ({
        name: holder,
        granted: `${granted}`,
        charged: `${charged}`,
        returned: `${returned}`,
        isDrained,
      }),
    ),
  }
}

export function restoreBudget(stored: StoredBudget): BudgetState | undefined {
  const { id, window, endsAt, charged, requests, generation } = stored
  const definitions = new Map(stored.definitions.map((one) => [one.generation, one]))
  const definition = definitions.get(generation)
  if (definition === undefined) return undefined
  const first = stored.first.map(
    (row) => new FirstGrants(new Map(row.map(([holder, amount]) => [holder, BigInt(amount)]))),
  )
  return {
    id,
    definitions,
    definition,
    window,
    endsAt,
    balances: new Map(
      stored.balances.map((balance) => [
        balance.name,
        restoreBalance(balance, first[balance.first] ?? noGrants),
      ]),
    ),
    first: new Map(),
    shares: new Map(stored.shares),
    charged: BigInt(charged),
    requests,
  }
}

function restoreBalance(stored: StoredBalance, first: FirstGrants): BalanceSnapshot {
  const slices: Record<string, bigint> = {}
  for (const [slice, charged] of stored.slices) slices[slice] = BigInt(charged)
  const changed = stored.holdings.map(({ name, granted, charged, returned, isDrained }) => {
    const amounts = {
      granted: BigInt(granted),
      charged: BigInt(charged),
      returned: BigInt(returned),
    }
    return [name, { ...amounts, isDrained }] as const
  })
  const holdings = new Holdings(first, changed)
  const { state: value, adjusted, requests } = stored
  const warned = Object.fromEntries(
    (stored.warned ?? []).map(([percent, limit, at]) => [percent, { limit: BigInt(limit), at }]),
  )
  return { value, context: { holdings, slices, adjusted: BigInt(adjusted), requests, warned } }
}

/** A warning in a snapshot. */
export interface StoredWarning extends Omit<BudgetWarning, 'spent' | 'limit' | 'endsAt'> {
  readonly spent: string
  readonly limit: string
  readonly endsAt?: number
}

export function storeWarning({ spent, limit, endsAt, ...rest }: BudgetWarning): StoredWarning {
  return {
    ...rest,
    spent: `${spent}`,
    limit: `${limit}`,
    ...(endsAt !== undefined && { endsAt }),
  }
}

export const restoreWarning = ({
  spent,
  limit,
  endsAt,
  ...rest
}: StoredWarning): BudgetWarning => ({
  ...rest,
  spent: BigInt(spent),
  limit: BigInt(limit),
  endsAt,
})

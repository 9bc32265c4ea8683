/**
 * The balances of all budgets, folded from the ledger. Each value of a budget has an actor for its current window.
 * Given the same events, every fold has the same balances.
 */
import type { SluiceEvent } from '../../../events/index.ts'
import { canonicalJson } from '../../ground/base/canonical.ts'
import { hexDigest } from '../../ground/base/digest.ts'
import { limitOf, millionths } from '../../ground/model/budgets.ts'
import {
  type Balance,
  type BalanceInput,
  type BalanceSnapshot,
  newBalance,
  nextBalance,
} from '../actors/budget.machine.ts'
import { FirstGrants, Holdings, noGrants } from '../actors/holdings.ts'
import {
  restoreBudget,
  restoreWarning,
  type StoredBudget,
  type StoredWarning,
  storeBudget,
  storeWarning,
} from './budget-snapshot.ts'
import type { BudgetDefinition, BudgetState, BudgetWarning } from './budget-state.ts'
import { slicesAt } from './windows.ts'

interface HolderState {
  /** Number of the last report that was counted. */
  sequence: number
  isReleased: boolean
}

/** What an event has changed; `value` is undefined if it may be all of a budget. */
export interface LedgerChange {
  readonly budget: string
  readonly value: string | undefined
}

const nothing: readonly LedgerChange[] = []

const listOf = (change: LedgerChange | undefined) => (change === undefined ? nothing : [change])

export class LedgerFold {
  readonly budgets = new Map<string, BudgetState>()
  readonly holders = new Map<string, HolderState>()
  /** Warnings that were not passed on yet, by the ids of their events. */
  readonly warnings = new Map<string, BudgetWarning>()
  #position = 0
  #time = 0

  get position(): number {
    return this.#position
  }

  /** Time of the last event, in milliseconds of the epoch. It never goes back. */
  get time(): number {
    return this.#time
  }

  /** Folds an event. Returns what it has changed. Events at or below the current position are ignored. */
  apply({
    position,
    event,
  }: {
    readonly position: number
    readonly event: SluiceEvent
  }): readonly LedgerChange[] {
    if (position <= this.#position) return nothing
    this.#position = position
    this.#time = Math.max(this.#time, Date.parse(event.time))
    switch (event.type) {
      case 'dev.sluice.budget.defined.v1':
        return this.#define(event.data)
      case 'dev.sluice.budget.opened.v1':
        return this.#open(event.data)
      case 'dev.sluice.budget.granted.v1':
        return this.#grant(event.data)
      case 'dev.sluice.budget.charged.v1':
        return this.#charge(event.data)
      case 'dev.sluice.budget.recalled.v1':
        return listOf(this.#step(event.data, { type: 'RECALLED' }))
      case 'dev.sluice.budget.adjusted.v1':
        return listOf(
          this.#step(event.data, { type: 'ADJUSTED', amount: BigInt(event.data.amount) }),
        )
      case 'dev.sluice.budget.released.v1':
        return this.#release(event.data.holder)
      case 'dev.sluice.budget.closed.v1':
        return listOf(this.#step(event.data, { type: 'CLOSED' }))
      case 'dev.sluice.budget.renamed.v1':
        return this.#rename(event.data)
      case 'dev.sluice.budget.warned.v1':
        return listOf(this.#warn(event.id ?? `${position}`, event.time, event.data))
      case 'dev.sluice.budget.notified.v1':
        this.warnings.delete(event.data.warning)
        return nothing
      default:
        return nothing
    }
  }

  #define(data: EventData<'dev.sluice.budget.defined.v1'>): readonly LedgerChange[] {
    const { budget: id, ...rest } = data
    const definition = { id, ...rest } as BudgetDefinition
    const known = this.budgets.get(id)
    if (known === undefined) {
      this.budgets.set(id, newBudget(definition))
    } else if (definition.generation > known.definition.generation) {
      if (countsOtherwise(known.definition, definition)) endWindow(known)
      known.definitions.set(definition.generation, definition)
      known.first.clear()
      known.definition = definition
    }
    return [{ budget: id, value: undefined }]
  }

  #open(data: EventData<'dev.sluice.budget.opened.v1'>): readonly LedgerChange[] {
    const budget = this.budgets.get(data.budget)
    if (budget === undefined || data.window <= budget.window) return nothing
    budget.window = data.window
    budget.endsAt = data.endsAt === undefined ? undefined : Date.parse(data.endsAt)
    endBalances(budget)
    for (const generation of budget.definitions.keys()) {
      if (generation !== budget.definition.generation) budget.definitions.delete(generation)
    }
    return [{ budget: data.budget, value: undefined }]
  }

  #grant({ holder, grants }: EventData<'dev.sluice.budget.granted.v1'>): readonly LedgerChange[] {
    this.#holder(holder)
    return grants.flatMap(({ budget: id, window, value, amount, share, generation }) => {
      const budget = this.budgets.get(id)
      if (budget === undefined || window !== budget.window) return []
      if (value !== undefined && amount !== undefined) {
        const input = { type: 'GRANTED', holder, amount: BigInt(amount) } as const
        return listOf(this.#step({ budget: id, window, value }, input))
      }
      if (share === undefined || generation === undefined) return []
      budget.shares.set(holder, [...(budget.shares.get(holder) ?? []), { share, generation }])
      budget.first.clear()
      return [{ budget: id, value: undefined }]
    })
  }

  #charge({ holder, sequence, charges }: EventData<'dev.sluice.budget.charged.v1'>) {
    const known = this.#holder(holder)
    if (sequence <= known.sequence) return nothing
    known.sequence = sequence
    const changes: LedgerChange[] = []
    for (const charge of charges) {
      const budget = this.budgets.get(charge.budget)
      if (budget === undefined) continue
      const { charged: text, returned, requests = 0, drained } = charge
      const charged = text === undefined ? 0n : BigInt(text)
      budget.charged += charged
      budget.requests += requests
      const { slice, firstSlice } = slicesAt(budget.definition.window, this.#time)
      const change = this.#step(charge, {
        type: 'CHARGED',
        holder,
        charged,
        returned: returned === undefined ? 0n : BigInt(returned),
        requests,
        drained: drained === undefined ? undefined : BigInt(drained),
        slice,
        firstSlice,
      })
      if (change !== undefined) changes.push(change)
    }
    return changes
  }

  /** A charge of an earlier window only counts in the sum of all charges. */
  #step(
    { budget: id, window, value }: { budget: string; window: number; value: string },
    input: BalanceInput,
  ): LedgerChange | undefined {
    const budget = this.budgets.get(id)
    if (budget === undefined || window !== budget.window) return undefined
    const known = budget.balances.get(value)
    const balance = nextBalance(known ?? balanceOf(budget, value), input)
    if (balance !== known) budget.balances.set(value, balance)
    return { budget: id, value }
  }

  #warn(
    id: string,
    time: string,
    data: EventData<'dev.sluice.budget.warned.v1'>,
  ): LedgerChange | undefined {
    const budget = this.budgets.get(data.budget)
    if (budget === undefined) return undefined
    const { value, percent } = data
    const [spent, limit] = [BigInt(data.spent), BigInt(data.limit)]
    const { name, unit, window } = budget.definition
    const of = { budget: budget.id, name, unit, window, endsAt: budget.endsAt }
    this.warnings.set(id, { id, ...of, value, percent, spent, limit, time })
    return this.#step(data, { type: 'WARNED', percent, limit, at: this.#time })
  }

  #release(holder: string): readonly LedgerChange[] {
    this.#holder(holder).isReleased = true
    const changes: LedgerChange[] = []
    for (const budget of this.budgets.values()) {
      budget.shares.delete(holder)
      budget.first.clear()
      for (const [value, balance] of budget.balances) {
        const next = nextBalance(balance, { type: 'RELEASED', holder })
        if (next === balance) continue
        budget.balances.set(value, next)
        changes.push({ budget: budget.id, value })
      }
    }
    return changes
  }

  /** No proxy holds an allowance for the value any more, so only its sums are kept. */
  #rename({ value, pseudonym }: EventData<'dev.sluice.budget.renamed.v1'>): LedgerChange[] {
    const changes: LedgerChange[] = []
    for (const budget of this.budgets.values()) {
      const known = budget.balances.get(value)
      if (known === undefined) continue
      budget.balances.delete(value)
      const context = { ...known.context, holdings: new Holdings(noGrants) }
      budget.balances.set(pseudonym, { value: 'closed', context })
      changes.push({ budget: budget.id, value: pseudonym })
    }
    for (const [id, warning] of this.warnings) {
      if (warning.value === value) this.warnings.set(id, { ...warning, value: pseudonym })
    }
    return changes
  }

  #holder(name: string): HolderState {
    const known = this.holders.get(name)
    if (known !== undefined) return known
    const holder = { sequence: 0, isReleased: false }
    this.holders.set(name, holder)
    return holder
  }

  /** The state as JSON. */
  snapshot(): string {
    const state: StoredState = {
      position: this.#position,
      time: this.#time,
      holders: [...this.holders],
      budgets: Array.from(this.budgets.values(), storeBudget),
      warnings: Array.from(this.warnings.values(), storeWarning),
    }
    return JSON.stringify(state)
  }

  /** Continues from a snapshot of this fold version. */
  restore(snapshot: string): void {
    const state = JSON.parse(snapshot) as StoredState
    this.#position = state.position
    this.#time = state.time
    this.holders.clear()
    for (const [name, holder] of state.holders) this.holders.set(name, holder)
    this.budgets.clear()
    for (const stored of state.budgets) {
      const budget = restoreBudget(stored)
      if (budget !== undefined) this.budgets.set(budget.id, budget)
    }
    this.warnings.clear()
    for (const stored of state.warnings) this.warnings.set(stored.id, restoreWarning(stored))
  }

  /** Digest of the whole state. Folds of the same events have the same. */
  digest(): string {
    return hexDigest('sha256', canonicalJson(JSON.parse(this.snapshot()))).slice(0, 16)
  }
}

/** A snapshot. It is not checked, because only a fold of the same version reads it. */
interface StoredState {
  readonly position: number
  readonly time: number
  readonly holders: readonly [string, HolderState][]
  readonly budgets: readonly StoredBudget[]
  readonly warnings: readonly StoredWarning[]
}

type EventData<Type extends SluiceEvent['type']> = Extract<
  SluiceEvent,
  { readonly type: Type }
>['data']

/** Whether what was counted by one definition means nothing in the other. */
const countsOtherwise = (before: BudgetDefinition, after: BudgetDefinition): boolean =>
  before.unit !== after.unit || canonicalJson(before.window) !== canonicalJson(after.window)

/** Ends the window of a budget at once, so that the next one is due. Balances and charges begin at zero. */
function endWindow(budget: BudgetState): void {
  if (budget.window > 0) budget.endsAt = 0
  endBalances(budget)
  budget.charged = 0n
  budget.requests = 0
}

function endBalances({ balances, shares, first }: BudgetState): void {
  balances.clear()
  shares.clear()
  first.clear()
}

function newBudget(definition: BudgetDefinition): BudgetState {
  return {
    id: definition.id,
    definitions: new Map([[definition.generation, definition]]),
    definition,
    window: 0,
    endsAt: undefined,
    balances: new Map(),
    shares: new Map(),
    first: new Map(),
    charged: 0n,
    requests: 0,
  }
}

/** What a holder may use of a value without a balance. */
export function shareOf(budget: BudgetState, holder: string, value: string): bigint {
  let most = 0n
  for (const { share, generation } of budget.shares.get(holder) ?? []) {
    const definition = budget.definitions.get(generation)
    if (definition === undefined) continue
    const amount = millionths(limitOf(definition, value), share)
    if (amount > most) most = amount
  }
  return most
}

/** Returns the balance of a value. A new one begins with the shares of all holders. */
export const balanceOf = (budget: BudgetState, value: string): BalanceSnapshot =>
  budget.balances.get(value) ?? newBalance(firstGrantsOf(budget, value))

function firstGrantsOf(budget: BudgetState, value: string): FirstGrants {
  const hasOverride = [...budget.definitions.values()].some(({ overrides }) =>
    Object.hasOwn(overrides, value),
  )
  const key = hasOverride ? value : undefined
  const known = budget.first.get(key)
  if (known !== undefined) return known
  const grants = new Map<string, bigint>()
  for (const holder of budget.shares.keys()) {
    const amount = shareOf(budget, holder, value)
    if (amount > 0n) grants.set(holder, amount)
  }
  const first = new FirstGrants(grants)
  budget.first.set(key, first)
  return first
}

/** What was spent of a balance in the window that contains `time`. */
export function spentOf(budget: BudgetState, { slices }: Balance, time: number): bigint {
  const { firstSlice } = slicesAt(budget.definition.window, time)
  let sum = 0n
  for (const [slice, charged] of Object.entries(slices)) {
    if (Number(slice) >= firstSlice) sum += charged
  }
  return sum
}

/** What of a value is neither spent nor granted; negative if more is than the amount. */
export function poolOf(budget: BudgetState, value: string, time: number): bigint {
  const { context } = balanceOf(budget, value)
  const limit = limitOf(budget.definition, value) + context.adjusted
  return limit - spentOf(budget, context, time) - context.holdings.outstanding
}

/**
 * Decisions of the ledger: pure functions from its state to the data of events. Every decision is appended at the
 * position that it was made for, so that another writer cannot have granted the same amount.
 */
import type { BudgetCharge, BudgetGrant } from '../../../events/index.ts'
import { type HolderReport, isCounted } from '../../ground/model/budgets.ts'
import { type Holdings, outstandingOf } from '../actors/holdings.ts'
import type { BudgetDefinition, BudgetState } from './budget-state.ts'
import { balanceOf, type LedgerFold, poolOf } from './ledger-fold.ts'
import { endOfWindow } from './windows.ts'

/** All of an amount, in millionths. */
const whole = 1_000_000

/** The data of the charges that a report adds to the log. Entries without a change are left out. */
export function chargesOf({ entries }: HolderReport): BudgetCharge[] {
  return entries.filter(isCounted).map((entry) => {
    const { budget, value, window, charged, returned, requests, isDrained, granted } = entry
    return {
      budget,
      window,
      value,
      ...(charged !== 0n && { charged: `${charged}` }),
      ...(returned !== 0n && { returned: `${returned}` }),
      ...(requests !== 0 && { requests }),
      ...(isDrained && { drained: `${granted}` }),
    }
  })
}

/** Budgets of the configuration that the ledger does not have, or has in an older generation. */
export function newDefinitions(
  fold: LedgerFold,
  configured: Iterable<BudgetDefinition>,
): BudgetDefinition[] {
  return [...configured].filter(({ id, generation }) => {
    const known = fold.budgets.get(id)
    return known === undefined || known.definition.generation < generation
  })
}

/** The next window of a budget if one is due. A clock that was set back does not open one. */
export function dueWindow(budget: BudgetState, now: number) {
  const { window, endsAt, definition } = budget
  if (window > 0 && (endsAt === undefined || now < endsAt)) return undefined
  const end = endOfWindow(definition.window, now)
  return {
    budget: budget.id,
    window: window + 1,
    ...(end !== undefined && { endsAt: new Date(end).toISOString() }),
  }
}

/** The names of the holders that have not been released. */
export const liveHolders = ({ holders }: LedgerFold): string[] =>
  [...holders].filter(([, { isReleased }]) => !isReleased).map(([name]) => name)

/**
 * The share of new values for a holder that has none yet. The only holder that can exist gets all; of several, each
 * gets half of what is free, so that one more can always join.
 */
export function shareFor(budget: BudgetState, isSole: boolean): number {
  if (isSole) return whole
  let taken = 0
  for (const shares of budget.shares.values()) {
    taken += Math.max(0, ...shares.map(({ share }) => share))
  }
  return Math.max(0, Math.floor((whole - taken) / 2))
}

/** The share of each holder when a window begins: half of the amount for all together. */
export const equalShare = (holders: number, isSole: boolean): number =>
  isSole ? whole : Math.floor(whole / 2 / Math.max(1, holders))

/** Grants that give a holder a part of every balance that exists already. */
export function grantsOnJoin(budget: BudgetState, isSole: boolean, time: number): BudgetGrant[] {
  const part = isSole ? 1n : 4n
  return [...budget.balances].flatMap(([value, { value: state }]) => {
    if (state === 'closed') return []
    const amount = poolOf(budget, value, time) / part
    return amount > 0n ? [grant(budget, value, amount)] : []
  })
}

const grant = ({ id, window }: BudgetState, value: string, amount: bigint): BudgetGrant => ({
  budget: id,
  window,
  value,
  amount: `${amount}`,
})

/** What the ledger answers a holder that misses an allowance. */
interface WantDecision {
  readonly grant: BudgetGrant | undefined
  readonly isRecall: boolean
  /** Whether nothing can be given to the holder, now or after others have given something back. */
  readonly isExhausted: boolean
}

/** `taken` was granted of this balance since the state of the fold. */
export function decideWant(
  budget: BudgetState,
  value: string,
  { holder, want, taken }: { holder: string; want: bigint; taken: bigint },
  { holders, time }: { holders: number; time: number },
): WantDecision {
  const pool = poolOf(budget, value, time) - taken
  const { value: state, context } = balanceOf(budget, value)
  if (state === 'closed') return { grant: undefined, isRecall: false, isExhausted: true }
  const isOwed = mayGetBack(context.holdings, holder)
  const part = holders <= 1 ? pool : pool / BigInt(2 * holders)
  const amount = min(pool, part > want ? part : want)
  const isShort = pool < want
  return {
    grant: amount > 0n ? grant(budget, value, amount) : undefined,
    isRecall: isShort && isOwed && state === 'granted' && amount <= 0n,
    isExhausted: isShort && !isOwed,
  }
}

/** Whether a holder, other than the one that asks, can give something back. */
function mayGetBack(holdings: Holdings, except?: string): boolean {
  for (const [holder, holding] of holdings) {
    if (holder !== except && !holding.isDrained && outstandingOf(holding) > 0n) return true
  }
  return false
}

const min = (a: bigint, b: bigint): bigint => (a < b ? a : b)

/** Values of which more is granted than their amount now allows, because it has become smaller. */
export function overdrawnValues(
  budget: BudgetState,
  values: Iterable<string>,
  time: number,
): string[] {
  return [...values].filter((value) => {
    const { value: state, context } = balanceOf(budget, value)
    if (state !== 'granted' || poolOf(budget, value, time) >= 0n) return false
    return mayGetBack(context.holdings)
  })
}

/** The events that the ledger decides next: windows, shares, grants and recalls. */
import {
  type BudgetGrant,
  budgetGranted,
  budgetOpened,
  budgetRecalled,
  type EventDefinition,
} from '../../../events/index.ts'
import { accountKey } from '../../ground/model/budgets.ts'
import type { BudgetDefinition } from './budget-state.ts'
import {
  decideWant,
  dueWindow,
  equalShare,
  grantsOnJoin,
  liveHolders,
  overdrawnValues,
  shareFor,
} from './decide.ts'
import type { HolderSession } from './holder-session.ts'
import { type LedgerChange, type LedgerFold, poolOf } from './ledger-fold.ts'

export type NewEvent = readonly [
  EventDefinition<string, object>,
  name: string,
  data: object,
  id?: string,
]

/** What decisions depend on. */
export interface Scene {
  readonly fold: LedgerFold
  /** The holders that are connected here. */
  readonly sessions: ReadonlySet<HolderSession>
  readonly configured: ReadonlyMap<string, BudgetDefinition>
  readonly isSole: boolean
  /** Milliseconds of the epoch. */
  readonly now: number
}

/** Maximum number of grants in one event. */
const maxEntries = 1_000

export function dueWindows({ fold, configured, isSole, now }: Scene): NewEvent[] {
  const holders = liveHolders(fold)
  const grants: BudgetGrant[] = []
  const opened = [...configured.keys()].flatMap((id): NewEvent[] => {
    const budget = fold.budgets.get(id)
    const due = budget && dueWindow(budget, now)
    if (budget === undefined || due === undefined) return []
    const { generation } = budget.definition
    const share = equalShare(holders.length, isSole)
    grants.push({ budget: id, window: due.window, share, generation })
    return [[budgetOpened, id, due]]
  })
  return [...opened, ...holders.flatMap((holder) => grantEvents(holder, grants))]
}

function grantEvents(holder: string, grants: readonly BudgetGrant[]): NewEvent[] {
  const events: NewEvent[] = []
  for (let from = 0; from < grants.length; from += maxEntries) {
    const data = { holder, grants: grants.slice(from, from + maxEntries) }
    events.push([budgetGranted, holder, data])
  }
  return events
}

/** Shares for connected holders that have none of a budget, or none of its present generation. */
export function missingShares({ fold, sessions, configured, isSole, now }: Scene): NewEvent[] {
  const stays = ({ holder, isLeaving }: HolderSession) =>
    !isLeaving && fold.holders.get(holder)?.isReleased !== true
  for (const { holder } of [...sessions].filter(stays)) {
    const grants: BudgetGrant[] = []
    for (const id of configured.keys()) {
      const budget = fold.budgets.get(id)
      if (budget === undefined || budget.window === 0) continue
      const { window, definition } = budget
      const { generation } = definition
      const own = budget.shares.get(holder)
      if (own?.some((one) => one.generation === generation)) continue
      const share = own?.at(-1)?.share ?? shareFor(budget, isSole)
      grants.push({ budget: id, window, share, generation })
      if (own === undefined) grants.push(...grantsOnJoin(budget, isSole, now))
    }
    // One holder at a time, because its shares reduce those of the next one.
    if (grants.length > 0) return grantEvents(holder, grants)
  }
  return []
}

/** Grants and recalls for the balances that have changed, or of which an allowance is missing. */
export function wantedEvents(
  scene: Scene,
  touched: readonly LedgerChange[],
  monotonicMs: number,
): NewEvent[] {
  const { sessions, isSole } = scene
  const recalls = overdrawn(scene, touched)
  const taken = new Map<string, bigint>()
  const events = [...sessions].flatMap((session) => {
    session.forgetWants(monotonicMs)
    if (session.isLeaving) return []
    const grants = isSole
      ? soleGrants(scene, touched)
      : wantedGrants(scene, session, taken, recalls)
    return grantEvents(session.holder, grants)
  })
  return [...recalls.values(), ...events]
}

const recall = (budget: string, window: number, value: string): NewEvent => [
  budgetRecalled,
  budget,
  { budget, window, value },
]

/** Recalls of values of which more is granted than they have, by budget and value. */
function overdrawn({ fold, now }: Scene, touched: readonly LedgerChange[]): Map<string, NewEvent> {
  const recalls = new Map<string, NewEvent>()
  for (const { budget: id, value } of touched) {
    const budget = fold.budgets.get(id)
    if (budget === undefined) continue
    const values = value === undefined ? budget.balances.keys() : [value]
    for (const each of overdrawnValues(budget, values, now)) {
      recalls.set(accountKey(id, each), recall(id, budget.window, each))
    }
  }
  return recalls
}

/** Grants to a holder that misses allowances. Adds to what was `taken` of each balance, and to the recalls. */
function wantedGrants(
  { fold, now }: Scene,
  session: HolderSession,
  taken: Map<string, bigint>,
  recalls: Map<string, NewEvent>,
): BudgetGrant[] {
  const holders = liveHolders(fold).length
  const grants: BudgetGrant[] = []
  for (const { budget: id, value, want } of session.wants.values()) {
    const budget = fold.budgets.get(id)
    if (budget === undefined) continue
    const key = accountKey(id, value)
    const missing = { holder: session.holder, want, taken: taken.get(key) ?? 0n }
    const decision = decideWant(budget, value, missing, { holders, time: now })
    session.setExhausted({ budget: id, value }, decision.isExhausted)
    if (decision.isRecall) recalls.set(key, recall(id, budget.window, value))
    if (decision.grant === undefined) continue
    grants.push(decision.grant)
    taken.set(key, (taken.get(key) ?? 0n) + BigInt(decision.grant.amount ?? 0))
    session.wants.delete(key)
  }
  return grants
}

/** The only holder gets all that is free, so that it never has to ask. */
function soleGrants({ fold, now }: Scene, touched: readonly LedgerChange[]): BudgetGrant[] {
  const found = new Map<string, BudgetGrant>()
  for (const { budget: id, value } of touched) {
    const budget = fold.budgets.get(id)
    if (budget === undefined) continue
    for (const each of value === undefined ? budget.balances.keys() : [value]) {
      const state = budget.balances.get(each)?.value ?? 'closed'
      const pool = state === 'closed' ? 0n : poolOf(budget, each, now)
      const grant = { budget: id, window: budget.window, value: each, amount: `${pool}` }
      if (pool > 0n) found.set(accountKey(id, each), grant)
    }
  }
  return [...found.values()]
}

/** Reads the ledger without serving holders, and adjusts balances. */
import { randomUUID } from 'node:crypto'
import { budgetAdjusted } from '../../../events/index.ts'
import { systemClock } from '../../ground/base/clock.ts'
import { type EventLog, LogError, newEvent, type Position } from '../log/index.ts'
import type { BudgetState } from './budget-state.ts'
import { LedgerFold } from './ledger-fold.ts'

/** Version of the fold; snapshots of another one are not used. */
export const ledgerVersion = 'ledger-5'

/** The writer of all events of the ledger. */
export const ledgerWriter = { source: '/sluice/ledger', epoch: 0, clock: systemClock } as const

/** What an event of the ledger is about: a budget or a holder. */
export const ledgerSubject = (name: string) => ({ kind: 'Ledger', name }) as const

/** Continues a fold from the newest snapshot, if that is ahead. Returns whether it was. */
export async function restoreNewest(fold: LedgerFold, log: EventLog): Promise<boolean> {
  const snapshot = await log.loadSnapshot({ foldVersion: ledgerVersion })
  if (snapshot === undefined) {
    // Without the sums of events that are gone, every budget would be full again.
    if (fold.position + 1 >= (await log.firstPosition())) return false
    throw new LogError('corrupt', 'its first events were removed, and no snapshot has their sums')
  }
  if (snapshot.position <= fold.position) return false
  fold.restore(Buffer.concat(snapshot.chunks).toString())
  return true
}

/** Folds the events of a log that a fold does not have yet. */
export async function catchUp(fold: LedgerFold, log: EventLog): Promise<void> {
  const from = (fold.position + 1) as Position
  for await (const recorded of log.read({ from })) fold.apply(recorded)
}

/** The state of the ledger after its last event. */
export async function foldLedger(log: EventLog): Promise<LedgerFold> {
  const fold = new LedgerFold()
  await restoreNewest(fold, log)
  await catchUp(fold, log)
  return fold
}

interface Adjustment {
  /** Id of the budget. */
  readonly budget: string
  readonly value: string
  /** What is added to the amount of the current window; negative if it is taken away. */
  readonly amount: bigint
  readonly reason: string
  readonly author: string
}

/** How long an adjustment is repeated while other writers are faster. */
const patienceMs = 10_000

/**
 * Changes the amount of a value in the current window of its budget. `check` throws if the budget is not as expected;
 * the event is appended at the position for which it was checked, so that no other window has begun by then.
 */
export async function adjustBudget(
  log: EventLog,
  fold: LedgerFold,
  { budget: id, ...adjustment }: Adjustment,
  check: (budget: BudgetState) => void,
): Promise<void> {
  const key = randomUUID()
  for (const end = performance.now() + patienceMs; ; ) {
    await catchUp(fold, log)
    const budget = fold.budgets.get(id)
    if (budget === undefined) throw new Error(`the ledger has no budget ${id}`)
    check(budget)
    const { amount, ...rest } = adjustment
    const data = { budget: id, window: budget.window, amount: `${amount}`, ...rest }
    const event = newEvent(budgetAdjusted, ledgerWriter, ledgerSubject(id), { id: key, data })
    const expectedVersion = fold.position as Position
    const appended = await log.append([event], { expectedVersion })
    if (appended.ok) break
    const [problem] = appended.problems
    if (problem?.reason !== 'conflict') throw new Error(problem?.message ?? 'nothing was appended')
    if (performance.now() > end) {
      throw new Error(`the ledger has changed all the time for ${patienceMs / 1_000} s; try again`)
    }
  }
  await catchUp(fold, log)
}

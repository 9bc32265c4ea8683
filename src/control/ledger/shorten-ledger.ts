/**
 * Removes old events of the ledger, and erases a value of its budgets. Sums stay: a snapshot has those of the events
 * that are removed. `docs/adr/0028-erasing-renames-an-account.md` gives the reasons.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as after, setImmediate } from 'node:timers/promises'
import {
  budgetClosed,
  budgetErased,
  budgetRenamed,
  type SluiceEvent,
} from '../../../events/index.ts'
import { outstandingOf } from '../actors/holdings.ts'
import { type EventLog, newEvent, type Position } from '../log/index.ts'
import { LedgerFold } from './ledger-fold.ts'
import type { NewEvent } from './next-events.ts'
import { catchUp, foldLedger, ledgerSubject, ledgerVersion, ledgerWriter } from './read-ledger.ts'

/** The events that were removed. */
interface Removed {
  readonly events: number
  /** Position of the last one. */
  readonly upTo: number
}

/** Number of events that are folded without a pause. */
const eventsAtOnce = 1_000

/**
 * Removes the events before a time, in milliseconds of the epoch. At least the last event stays. If `signal` is
 * aborted, it removes those that it has read.
 */
export async function purgeLedger(
  log: EventLog,
  before: number,
  signal?: AbortSignal,
): Promise<Removed> {
  const first = await log.firstPosition()
  const last = await log.lastPosition()
  const fold = new LedgerFold()
  const stored = await log.loadSnapshot({ foldVersion: ledgerVersion, atMost: first })
  if (stored !== undefined) fold.restore(Buffer.concat(stored.chunks).toString())
  for await (const recorded of log.read({ from: Math.max(first, fold.position + 1) as Position })) {
    if (recorded.position >= last || Date.parse(recorded.event.time) >= before) break
    if (signal?.aborted === true) break
    fold.apply(recorded)
    // Other work of this thread continues meanwhile.
    if (recorded.position % eventsAtOnce === 0) await setImmediate()
  }
  const upTo = fold.position
  if (upTo < first) return { events: 0, upTo: first - 1 }
  await replaceBySnapshot(log, fold)
  return { events: upTo - first + 1, upTo }
}

async function replaceBySnapshot(log: EventLog, fold: LedgerFold): Promise<void> {
  const position = fold.position as Position
  const chunks = [Buffer.from(fold.snapshot())]
  await log.saveSnapshot({ position, foldVersion: ledgerVersion, chunks })
  await log.purgeUpTo(position)
}

interface Erasure {
  readonly value: string
  readonly reason: string
  readonly author: string
  /** Whether no proxy can have an allowance, because no gateway writes the log. */
  readonly isUnused: boolean
  /** How long proxies have to give back their allowances. */
  readonly patienceMs: number
}

/** Thrown if a value cannot be erased now. */
export class ErasureError extends Error {}

interface Erased extends Removed {
  readonly pseudonym: string
}

/**
 * Erases a value of all budgets: its balances continue under a random name, and the events and snapshots before that
 * are removed. Returns undefined if the ledger does not have the value.
 * @throws ErasureError if a budget has an amount for the value, or if proxies do not give back their allowances
 */
export async function eraseValue(log: EventLog, erasure: Erasure): Promise<Erased | undefined> {
  const { value, reason, author, isUnused, patienceMs } = erasure
  const fold = await foldLedger(log)
  assertNoOverride(fold, value)
  if (!hasBalance(fold, value) && !(await isMentioned(log, value))) return undefined
  if (!isUnused) await close(log, fold, value, patienceMs)
  const pseudonym = `erased-${randomUUID()}`
  const first = await log.firstPosition()
  await append(log, fold, () => [[budgetRenamed, 'erasure', { value, pseudonym }]])
  const upTo = fold.position
  await replaceBySnapshot(log, fold)
  await log.compact()
  const data = { pseudonym, removedUpTo: upTo, reason, author }
  await append(log, fold, () => [[budgetErased, 'erasure', data]])
  if (await isMentioned(log, value)) {
    throw new ErasureError('a proxy has used the value in the meantime; erase it again')
  }
  return { pseudonym, events: upTo - first + 1, upTo }
}

function assertNoOverride({ budgets }: LedgerFold, value: string): void {
  for (const { definitions } of budgets.values()) {
    for (const { name, overrides } of definitions.values()) {
      if (!Object.hasOwn(overrides, value)) continue
      throw new ErasureError(
        `GatewayBudget ${name} has an override for the value, or had one in this window; remove it, and wait for the next window`,
      )
    }
  }
}

const hasBalance = ({ budgets }: LedgerFold, value: string): boolean =>
  [...budgets.values()].some(({ balances }) => balances.has(value))

/** Whether an event has the value. */
async function isMentioned(log: EventLog, value: string): Promise<boolean> {
  for await (const { event } of log.read()) {
    if (valuesIn(event).includes(value)) return true
  }
  return false
}

function valuesIn(event: SluiceEvent): readonly (string | undefined)[] {
  switch (event.type) {
    case 'dev.sluice.budget.charged.v1':
      return event.data.charges.map((charge) => charge.value)
    case 'dev.sluice.budget.granted.v1':
      return event.data.grants.map((grant) => grant.value)
    case 'dev.sluice.budget.defined.v1':
      return Object.keys(event.data.overrides)
    case 'dev.sluice.budget.recalled.v1':
    case 'dev.sluice.budget.adjusted.v1':
    case 'dev.sluice.budget.closed.v1':
    case 'dev.sluice.budget.renamed.v1':
      return [event.data.value]
    default:
      return []
  }
}

/** Delay before the ledger is read again. */
const pollMs = 100

/** Closes the balances of a value, and waits until no proxy has an allowance of them. */
async function close(
  log: EventLog,
  fold: LedgerFold,
  value: string,
  patienceMs: number,
): Promise<void> {
  await append(log, fold, () =>
    [...fold.budgets.values()].flatMap(({ id, window, balances }): NewEvent[] => {
      const state = balances.get(value)?.value ?? 'closed'
      return state === 'closed' ? [] : [[budgetClosed, id, { budget: id, window, value }]]
    }),
  )
  for (const end = performance.now() + patienceMs; ; ) {
    const users = holdersOf(fold, value)
    if (users.length === 0) return
    if (performance.now() > end) {
      throw new ErasureError(
        `${users.join(', ')} may have requests under way for the value; its budgets are closed, so erase it again later`,
      )
    }
    await after(pollMs)
    await log.lastPosition()
    await catchUp(fold, log)
  }
}

/** The runs of proxies that may still report charges of a value. */
function holdersOf({ budgets, holders }: LedgerFold, value: string): string[] {
  const found = new Set<string>()
  for (const { balances } of budgets.values()) {
    for (const [holder, holding] of balances.get(value)?.context.holdings ?? []) {
      const isOver = holding.isDrained && outstandingOf(holding) === 0n
      if (!isOver && holders.get(holder)?.isReleased !== true) found.add(holder)
    }
  }
  return [...found]
}

/** Appends what `decide` finds at the end of the log, and folds it. */
async function append(log: EventLog, fold: LedgerFold, decide: () => NewEvent[]): Promise<void> {
  const id = randomUUID()
  for (;;) {
    await catchUp(fold, log)
    const events = decide().map(([definition, name, data], at) =>
      newEvent(definition, ledgerWriter, ledgerSubject(name), { id: `${id}:${at}`, data }),
    )
    if (events.length === 0) return
    const appended = await log.append(events, { expectedVersion: fold.position as Position })
    if (appended.ok) break
    const [problem] = appended.problems
    if (problem?.reason !== 'conflict') throw new Error(problem?.message ?? 'nothing was appended')
  }
  await catchUp(fold, log)
}

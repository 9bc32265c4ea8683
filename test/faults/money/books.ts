/**
 * The books: compares what a vendor has billed with what the ledger has charged, to the last token and the last
 * 10⁻¹² USD. Only what ADR 25 states may be missing: charges that a killed proxy had not reported.
 */
import type { SluiceEvent } from '../../../events/index.ts'
import { outstandingOf } from '../../../src/control/actors/holdings.ts'
import type { BudgetState } from '../../../src/control/ledger/budget-state.ts'
import { LedgerFold } from '../../../src/control/ledger/ledger-fold.ts'
import { limitOf } from '../../../src/ground/model/budgets.ts'
import type { Billed } from './vendor.ts'

/** A proxy that was killed. */
export interface Kill {
  readonly proxy: string
  /** Unix time in milliseconds. */
  readonly at: number
}

/** What a holder had charged of an account, and what it still held when it was last heard of. */
interface HolderAccount {
  charged: bigint
  outstanding: bigint
}

/** A name under which a run of a proxy held allowances. */
interface Holder {
  readonly accounts: Map<string, HolderAccount>
  /** Unix times of its events in the log, in milliseconds. */
  readonly seenAt: number[]
}

interface Books {
  readonly problems: string[]
  /** Accounts (a budget, a team and a run of a proxy) that were compared, and those in which charges are missing. */
  accounts: number
  incomplete: number
  /** Charges that killed proxies had not reported, by the unit of the budget. */
  readonly lost: { USD: bigint; Tokens: bigint; Requests: bigint }
  /** The longest time before a kill whose charges are missing, in milliseconds. */
  longestLossMs: number
}

const unitsOf = {
  USD: ({ usd }: Billed) => usd,
  Tokens: ({ tokens }: Billed) => BigInt(tokens),
  Requests: () => 1n,
} as const

/** The proxy of a holder, which is named `<proxy>~<random>`. */
const proxyOf = (holder: string): string => holder.slice(0, holder.lastIndexOf('~'))

const accountName = (budget: string, value: string): string => `${budget}/${value}`

/** What the log says of each holder. */
export class Holders {
  readonly fold = new LedgerFold()
  readonly byName = new Map<string, Holder>()

  take(recorded: { readonly position: number; readonly event: SluiceEvent }): void {
    const { event } = recorded
    if (event.type === 'dev.sluice.budget.released.v1') this.#noteOutstanding(event.data.holder)
    this.fold.apply(recorded)
    if (event.type === 'dev.sluice.budget.granted.v1') this.#seen(event.data.holder, event.time)
    if (event.type !== 'dev.sluice.budget.charged.v1') return
    const holder = this.#seen(event.data.holder, event.time)
    for (const { budget, value, charged = '0' } of event.data.charges) {
      accountOf(holder, accountName(budget, value)).charged += BigInt(charged)
    }
  }

  /** Notes what every holder has, at the end of the log. */
  finish(): this {
    for (const [name, { isReleased }] of this.fold.holders) {
      if (!isReleased) this.#noteOutstanding(name)
    }
    return this
  }

  /** The holders of a run of a proxy: those that were first seen between two kills. */
  of(proxy: string, after: number, before: number): Holder[] {
    return [...this.byName].flatMap(([name, holder]) => {
      const first = holder.seenAt[0] ?? 0
      return proxyOf(name) === proxy && first >= after && first < before ? [holder] : []
    })
  }

  #of(name: string): Holder {
    const known = this.byName.get(name) ?? { accounts: new Map(), seenAt: [] }
    this.byName.set(name, known)
    return known
  }

  #seen(name: string, time: string): Holder {
    const holder = this.#of(name)
    holder.seenAt.push(Date.parse(time))
    return holder
  }

  /** What a holder may have spent without a report is at most what is outstanding to it. */
  #noteOutstanding(name: string): void {
    const holder = this.#of(name)
    for (const { id, balances } of this.fold.budgets.values()) {
      for (const [value, { context }] of balances) {
        const holding = context.holdings.get(name)
        if (holding === undefined) continue
        accountOf(holder, accountName(id, value)).outstanding = outstandingOf(holding)
      }
    }
  }
}

function accountOf(holder: Holder, account: string): HolderAccount {
  const known = holder.accounts.get(account) ?? { charged: 0n, outstanding: 0n }
  holder.accounts.set(account, known)
  return known
}

/** A run of a proxy. */
interface ProxyRun {
  readonly name: string
  readonly bills: readonly Billed[]
  readonly holders: readonly Holder[]
  /** When it was killed; undefined if it was not. */
  readonly killedAt: number | undefined
}

function runsOf(bills: readonly Billed[], holders: Holders, kills: readonly Kill[]): ProxyRun[] {
  const byRun = Map.groupBy(bills, ({ proxy, run }) => `${proxy}/${run}`)
  return [...byRun.values()].map((own) => {
    const { proxy = '', run = 0 } = own[0] ?? {}
    const times = kills.filter((kill) => kill.proxy === proxy).map(({ at }) => at)
    const [begunAt = 0, killedAt] = [times[run - 1], times[run]]
    return {
      name: `run ${run} of ${proxy}`,
      bills: own,
      holders: holders.of(proxy, begunAt, killedAt ?? Number.POSITIVE_INFINITY),
      killedAt,
    }
  })
}

/** What the report of a busy proxy may be late, beyond the time between two reports, in milliseconds. */
const slackMs = 2_000

/** Compares the books of all budgets, teams and runs of proxies. */
export function compareBooks(
  bills: readonly Billed[],
  holders: Holders,
  kills: readonly Kill[],
): Books {
  const lost = { USD: 0n, Tokens: 0n, Requests: 0n }
  const books: Books = { problems: [], accounts: 0, incomplete: 0, lost, longestLossMs: 0 }
  const runs = runsOf(bills, holders, kills)
  for (const budget of holders.fold.budgets.values()) {
    const teams = new Map<string, { billed: bigint; missing: bigint }>()
    for (const run of runs) {
      for (const [team, own] of Map.groupBy(run.bills, (bill) => bill.team)) {
        const { billed, missing } = compareAccount(books, budget, team, { ...run, bills: own })
        const before = teams.get(team) ?? { billed: 0n, missing: 0n }
        teams.set(team, { billed: before.billed + billed, missing: before.missing + missing })
      }
    }
    const { definition } = budget
    for (const [team, { billed, missing }] of teams) {
      const limit = limitOf(definition, team)
      if (billed <= limit + missing) continue
      const sums = `${billed} of ${limit}, and only ${missing} are not charged`
      books.problems.push(`${definition.name}: ${team} has spent ${sums}`)
    }
  }
  return books
}

function compareAccount(
  books: Books,
  { id, definition }: BudgetState,
  team: string,
  { name: runName, bills, holders, killedAt }: ProxyRun,
) {
  const name = `${definition.name} of ${team}, ${runName}`
  const amountOf = unitsOf[definition.unit]
  const billed = bills.reduce((sum, bill) => sum + amountOf(bill), 0n)
  let [charged, bound] = [0n, 0n]
  for (const { accounts } of holders) {
    const own = accounts.get(accountName(id, team))
    charged += own?.charged ?? 0n
    bound += own?.outstanding ?? 0n
  }
  const missing = billed - charged
  books.accounts++
  if (missing === 0n) return { billed, missing }
  books.incomplete++
  books.lost[definition.unit] += missing
  const tell = (text: string) => books.problems.push(`${name}: ${text}`)
  if (missing < 0n) tell(`${billed} are billed, but ${charged} are charged`)
  else if (killedAt === undefined) tell(`${missing} of ${billed} are not charged`)
  else {
    if (missing > bound) tell(`${missing} are not charged, more than the ${bound} that it held`)
    const lossMs = lossBefore(killedAt, bills, missing, amountOf)
    books.longestLossMs = Math.max(books.longestLossMs, lossMs)
    const allowedMs = unreportedMs(killedAt, holders)
    if (lossMs > allowedMs) {
      tell(`charges of the last ${lossMs} ms are missing, of which ${allowedMs} may be`)
    }
  }
  return { billed, missing }
}

/** The shortest time before a kill in which as much was billed as is missing, in milliseconds. */
function lossBefore(
  killedAt: number,
  bills: readonly Billed[],
  missing: bigint,
  amountOf: (bill: Billed) => bigint,
): number {
  let sum = 0n
  for (const bill of bills.toSorted((a, b) => b.endedAt - a.endedAt)) {
    sum += amountOf(bill)
    if (sum >= missing) return Math.max(0, killedAt - bill.endedAt)
  }
  return Number.POSITIVE_INFINITY
}

/**
 * The time before a kill whose charges may be missing. The last report in the log was made after the one before it
 * was counted, so that it has what had ended by then.
 */
function unreportedMs(killedAt: number, holders: readonly Holder[]): number {
  const times = holders.flatMap(({ seenAt }) => seenAt).sort((a, b) => b - a)
  return killedAt - Math.min(killedAt, times[1] ?? 0) + slackMs
}

/**
 * The books: compares what a vendor has billed with what the ledger has charged, to the last token and the last
 * 10⁻¹² USD. Only what ADR 25 states may be missing: charges that a killed proxy had not reported.
 */
import type { SluiceEvent } from '../../../events/index.ts'
import { outstandingOf } from '../../../src/control/actors/budget.machine.ts'
import { LedgerFold } from '../../../src/control/ledger/ledger-fold.ts'
import { limitOf } from '../../../src/ground/model/budgets.ts'
import type { Billed } from './vendor.ts'

/** A process that was killed. */
export interface Kill {
  readonly proxy: string
  /** Unix time in milliseconds. */
  readonly at: number
}

/** What one run of a proxy had charged of an account, and might have spent of it without a report. */
interface HolderAccount {
  charged: bigint
  /** What it still held when it was last heard of. */
  outstanding: bigint
}

/** A run of a proxy, as the ledger knows it. */
interface Holder {
  readonly accounts: Map<string, HolderAccount>
  /** Times of its charges in the log, in milliseconds. */
  readonly reportedAt: number[]
}

interface Books {
  readonly problems: string[]
  /** Accounts (budget and team) that were compared, and those in which charges are missing. */
  readonly accounts: number
  readonly incomplete: number
  /** Charges that killed proxies had not reported, by the unit of the budget. */
  readonly lost: Readonly<Record<string, bigint>>
  readonly lostRequests: number
  /** The longest time before a kill whose charges are missing, in milliseconds. */
  readonly longestLossMs: number
}

const unitsOf: Readonly<Record<string, (bill: Billed) => bigint>> = {
  USD: ({ usd }) => usd,
  Tokens: ({ tokens }) => BigInt(tokens),
  Requests: () => 1n,
}

/** The proxy of a holder, which is named `<proxy>~<random>`. */
const proxyOf = (holder: string): string => holder.slice(0, holder.lastIndexOf('~'))

/** What the log says of each holder. */
export class Holders {
  readonly fold = new LedgerFold()
  readonly byName = new Map<string, Holder>()

  take(recorded: { readonly position: number; readonly event: SluiceEvent }): void {
    const { event } = recorded
    if (event.type === 'dev.sluice.budget.released.v1') this.#note(event.data.holder)
    this.fold.apply(recorded)
    if (event.type !== 'dev.sluice.budget.charged.v1') return
    const holder = this.#of(event.data.holder)
    if (event.data.charges.length > 0) holder.reportedAt.push(Date.parse(event.time))
    for (const { budget, value, charged = '0' } of event.data.charges) {
      accountOf(holder, accountName(budget, value)).charged += BigInt(charged)
    }
  }

  /** Notes what every holder has, at the end of the log. */
  finish(): this {
    for (const [name, { isReleased }] of this.fold.holders) if (!isReleased) this.#note(name)
    return this
  }

  #of(name: string): Holder {
    const known = this.byName.get(name)
    if (known !== undefined) return known
    const holder: Holder = { accounts: new Map(), reportedAt: [] }
    this.byName.set(name, holder)
    return holder
  }

  /** What a holder may have spent without a report is at most what is outstanding to it. */
  #note(name: string): void {
    const holder = this.#of(name)
    for (const budget of this.fold.budgets.values()) {
      for (const [value, { context }] of budget.balances) {
        const holding = context.holdings[name]
        if (holding === undefined) continue
        accountOf(holder, accountName(budget.id, value)).outstanding = outstandingOf(holding)
      }
    }
  }
}

const accountName = (budget: string, value: string): string => `${budget}/${value}`

function accountOf(holder: Holder, account: string): HolderAccount {
  const known = holder.accounts.get(account) ?? { charged: 0n, outstanding: 0n }
  holder.accounts.set(account, known)
  return known
}

/** What a proxy may do between two reports on a busy machine, beyond the 200 ms of its clock. */
const slackMs = 2_000

/**
 * Compares the books. The time of a report in the log is when it was counted; the one before it was counted earlier,
 * and what ended before that is in one of the two.
 */
export function compareBooks(
  bills: readonly Billed[],
  holders: Holders,
  kills: readonly Kill[],
): Books {
  const problems: string[] = []
  const lost: Record<string, bigint> = { USD: 0n, Tokens: 0n, Requests: 0n }
  let [accounts, incomplete, longestLossMs] = [0, 0, 0]
  const byAccount = Map.groupBy(bills, ({ team, proxy }) => `${team}\n${proxy}`)
  for (const budget of holders.fold.budgets.values()) {
    const { id, definition } = budget
    const amountOf = unitsOf[definition.unit] ?? (() => 0n)
    const teams = new Map<string, { billed: bigint; missing: bigint }>()
    for (const [key, own] of byAccount) {
      const [team = '', proxy = ''] = key.split('\n')
      const name = `${definition.name} of ${team} through ${proxy}`
      const billed = own.reduce((sum, bill) => sum + amountOf(bill), 0n)
      const runs = [...holders.byName].filter(([holder]) => proxyOf(holder) === proxy)
      let [charged, bound] = [0n, 0n]
      const killed = kills.filter((kill) => kill.proxy === proxy)
      for (const [, { accounts: all }] of runs) {
        const account = all.get(accountName(id, team))
        charged += account?.charged ?? 0n
        bound += account?.outstanding ?? 0n
      }
      const missing = billed - charged
      accounts++
      const sums = teams.get(team) ?? { billed: 0n, missing: 0n }
      teams.set(team, { billed: sums.billed + billed, missing: sums.missing + missing })
      if (missing === 0n) continue
      incomplete++
      lost[definition.unit] = (lost[definition.unit] ?? 0n) + missing
      if (missing < 0n) problems.push(`${name}: ${billed} billed, but ${charged} charged`)
      else if (killed.length === 0) {
        problems.push(`${name}: ${missing} of ${billed} are not charged, and it was never killed`)
      } else if (missing > bound) {
        problems.push(`${name}: ${missing} are not charged, more than the ${bound} that it held`)
      }
      const before = lossBefore(own, missing, killed, amountOf)
      longestLossMs = Math.max(longestLossMs, before.ms)
      const allowed = allowedMs(runs, killed)
      if (before.ms > allowed) {
        problems.push(`${name}: charges of the last ${before.ms} ms are missing, not of ${allowed}`)
      }
    }
    for (const [team, { billed, missing }] of teams) {
      const limit = limitOf(definition, team)
      if (billed > limit + missing) {
        problems.push(
          `${definition.name}: ${team} was billed ${billed} of ${limit}; ${missing} are not charged`,
        )
      }
    }
  }
  const lostRequests = Number(lost.Requests ?? 0n)
  return { problems, accounts, incomplete, lost, lostRequests, longestLossMs }
}

/** The shortest time before kills in which as much was billed as is missing. */
function lossBefore(
  bills: readonly Billed[],
  missing: bigint,
  kills: readonly Kill[],
  amountOf: (bill: Billed) => bigint,
): { readonly ms: number } {
  const ages = bills
    .flatMap((bill) => {
      const kill = kills.find(
        ({ at }) => at >= bill.endedAt - slackMs && at <= bill.endedAt + 60_000,
      )
      return kill === undefined ? [] : [{ age: Math.max(0, kill.at - bill.endedAt), bill }]
    })
    .sort((a, b) => a.age - b.age)
  let sum = 0n
  for (const { age, bill } of ages) {
    sum += amountOf(bill)
    if (sum >= missing) return { ms: age }
  }
  return { ms: Number.POSITIVE_INFINITY }
}

/** The time before a kill whose charges may be missing: since the report before the last one was counted. */
function allowedMs(runs: readonly (readonly [string, Holder])[], kills: readonly Kill[]): number {
  const gaps = kills.map(({ at }) => {
    const reports = runs
      .flatMap(([, { reportedAt }]) => reportedAt)
      .filter((time) => time <= at + slackMs)
    const [last = at, previous = last] = reports.sort((a, b) => b - a)
    return at - Math.min(previous, last)
  })
  return Math.max(0, ...gaps) + slackMs
}

/** `sluice budgets explain` shows who has spent a budget, who holds allowances, and who has adjusted it. */

import { outstandingOf } from '../../../control/actors/holdings.ts'
import {
  budgetAmount,
  resetTime,
  type ValueBalance,
  valueBalance,
  valuesOf,
} from '../../../control/ledger/balances.ts'
import type { BudgetState } from '../../../control/ledger/budget-state.ts'
import type { LedgerFold } from '../../../control/ledger/ledger-fold.ts'
import type { EventLog } from '../../../control/log/index.ts'
import { type CommandResult, type Output, table } from '../shared/output.ts'
import { budgetNamed, type ConfiguredBudget, type LedgerSource, withLedger } from './ledger.ts'
import { whoOf } from './list.ts'

export interface ExplainBudgetOptions extends LedgerSource {
  readonly value?: string
}

/** What one proxy has reported for one value in the current window. */
interface Charged {
  readonly value: string
  readonly holder: string
  charged: bigint
  requests: number
  readonly first: string
  last: string
}

interface Adjusted {
  readonly time: string
  readonly value: string
  readonly amount: bigint
  readonly author: string
  readonly reason: string
}

interface History {
  readonly charges: readonly Charged[]
  readonly adjustments: readonly Adjusted[]
}

/** Reads what the events of the log say about the current window of a budget. */
async function historyOf(log: EventLog, { id, window }: BudgetState): Promise<History> {
  const charges = new Map<string, Charged>()
  const adjustments: Adjusted[] = []
  const counted = new Map<string, number>()
  for await (const { event } of log.read()) {
    if (event.type === 'dev.sluice.budget.adjusted.v1') {
      const { budget, value, amount, author = '', reason } = event.data
      if (budget !== id || event.data.window !== window) continue
      adjustments.push({ time: event.time, value, amount: BigInt(amount), author, reason })
    }
    if (event.type !== 'dev.sluice.budget.charged.v1') continue
    const { holder, sequence } = event.data
    // A report that was counted already is not counted again.
    if (sequence <= (counted.get(holder) ?? 0)) continue
    counted.set(holder, sequence)
    for (const one of event.data.charges) {
      if (one.budget !== id || one.window !== window) continue
      addCharge(charges, { ...one, holder, time: event.time })
    }
  }
  return { charges: [...charges.values()], adjustments }
}

function addCharge(
  charges: Map<string, Charged>,
  one: {
    readonly value: string
    readonly holder: string
    readonly time: string
    readonly charged?: string
    readonly requests?: number
  },
): void {
  const { value, holder, time, charged = '0', requests = 0 } = one
  if (charged === '0' && requests === 0) return
  const key = `${holder}\n${value}`
  const known = charges.get(key) ?? {
    value,
    holder,
    charged: 0n,
    requests: 0,
    first: time,
    last: time,
  }
  known.charged += BigInt(charged)
  known.requests += requests
  known.last = time
  charges.set(key, known)
}

/** The allowances that proxies have not spent. */
const allowancesOf = ({ balances }: BudgetState, { holders }: LedgerFold) =>
  [...balances].flatMap(([value, { context }]) =>
    [...context.holdings].flatMap(([holder, holding]) => {
      const amount = outstandingOf(holding)
      const isReleased = holders.get(holder)?.isReleased === true
      return amount === 0n || isReleased ? [] : [{ value, holder, amount }]
    }),
  )

/** Maximum number of rows of a table. JSON has all. */
const maxRows = 50

function cut(rows: readonly (readonly string[])[]): string[] {
  const more = rows.length - 1 - maxRows
  const text = table(rows.slice(0, maxRows + 1))
  return more > 0 ? [text, `… and ${more} more (--value names one, -o json has all)`] : [text]
}

type Explained = ReturnType<typeof explained>

function explained(
  budget: ConfiguredBudget & { readonly state: BudgetState },
  fold: LedgerFold,
  history: History,
  value: string | undefined,
) {
  const { name, uid, spec, state } = budget
  const isShown = (one: { readonly value: string }) => value === undefined || one.value === value
  const time = Math.max(Date.now(), fold.time)
  const values = value === undefined ? valuesOf(state, spec.each) : [value]
  const of = new Map(values.map((one) => [one, valueBalance(state, one, time)]))
  const byAmount = (a: Charged, b: Charged) => (a.charged > b.charged ? -1 : 1)
  return {
    name,
    uid,
    who: whoOf(budget),
    each: spec.each,
    unit: state.definition.unit,
    limit: BigInt(state.definition.amount),
    window: state.definition.window,
    number: state.window,
    resetsAt: resetTime(state),
    values: [...of.values()],
    charges: history.charges.filter(isShown).sort(byAmount),
    allowances: allowancesOf(state, fold).filter(isShown),
    adjustments: history.adjustments.filter(isShown),
    /** All charges since the budget exists, of all windows. */
    charged: state.charged,
  }
}

function textOf(found: Explained): string[] {
  const { unit, window, resetsAt, each, values } = found
  const amount = (of: bigint) => budgetAmount(unit, of)
  const zone = window.type === 'Rolling' ? 'rolling' : window.timeZone
  const period = `${window.unit.toLowerCase()} (${zone})`
  const shown = (value: string) => (value === '' ? '-' : value)
  const balance = (one: ValueBalance) => [
    shown(one.value),
    amount(one.limit),
    amount(one.spent),
    amount(one.reserved),
    amount(one.remaining),
    `${one.requests}`,
  ]
  const charge = (one: Charged) => [
    shown(one.value),
    one.holder,
    amount(one.charged),
    `${one.requests}`,
    one.first,
    one.last,
  ]
  const title = `${found.name}: ${amount(found.limit)} ${unit} per ${period}`
  return [
    each === undefined ? title : `${title} for each ${each}`,
    `requests to ${found.who}`,
    `window ${found.number}${resetsAt === undefined ? '' : `, until ${resetsAt}`}; ${amount(found.charged)} ${unit} charged since the budget exists`,
    '',
    ...cut([
      ['VALUE', 'LIMIT', 'SPENT', 'RESERVED', 'REMAINING', 'REQUESTS'],
      ...values.map(balance),
    ]),
    ...section('Charges of this window, by value and proxy', [
      ['VALUE', 'PROXY', 'CHARGED', 'REQUESTS', 'FIRST', 'LAST'],
      ...found.charges.map(charge),
    ]),
    ...section('Allowances that proxies hold', [
      ['VALUE', 'PROXY', 'ALLOWANCE'],
      ...found.allowances.map((one) => [shown(one.value), one.holder, amount(one.amount)]),
    ]),
    ...section('Adjustments of this window', [
      ['TIME', 'VALUE', 'BY', 'AUTHOR', 'REASON'],
      ...found.adjustments.map((one) => [
        one.time,
        shown(one.value),
        `${one.amount > 0n ? '+' : ''}${amount(one.amount)}`,
        one.author,
        one.reason,
      ]),
    ]),
  ]
}

const section = (title: string, rows: readonly (readonly string[])[]): string[] =>
  rows.length === 1 ? [] : ['', `${title}:`, ...cut(rows)]

/** Amounts are decimals as text. */
function jsonOf(found: Explained): unknown {
  const { unit } = found
  return JSON.parse(
    JSON.stringify(found, (_, value: unknown) =>
      typeof value === 'bigint' ? budgetAmount(unit, value) : value,
    ),
  )
}

export async function explainBudget(
  name: string,
  { value, ...source }: ExplainBudgetOptions,
  report: Output['report'],
): Promise<CommandResult> {
  return withLedger(source, report, async (ledger) => {
    const budget = budgetNamed(ledger, name)
    const history = await historyOf(ledger.log, budget.state)
    const found = explained(budget, ledger.fold, history, value)
    return { text: () => textOf(found), json: jsonOf(found) }
  })
}

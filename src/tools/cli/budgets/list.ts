/** `sluice budgets list` shows what is spent of every budget, or of every value. */
import {
  budgetAmount,
  budgetTotals,
  resetTime,
  valueBalance,
  valuesOf,
} from '../../../control/ledger/balances.ts'
import { compareText } from '../../../ground/model/names.ts'
import { csvRow } from '../../../past/spend/csv.ts'
import { exitCode, type Output, table } from '../shared/output.ts'
import { type ConfiguredBudget, type LedgerSource, withLedger } from './ledger.ts'

export interface ListOptions extends LedgerSource {
  readonly values?: boolean
  readonly output: 'text' | 'json' | 'csv'
}

/** A row: a budget, or one value of it. Amounts are decimals as text; one that does not exist is omitted. */
interface BudgetRow {
  readonly budget: string
  /** Whose requests are counted. */
  readonly who: string
  readonly value?: string
  readonly unit: string
  readonly limit: string
  readonly spent?: string
  readonly reserved?: string
  readonly remaining?: string
  readonly requests?: number
  /** Number of values with a balance, and of those of which nothing remains. */
  readonly values?: number
  readonly exhausted?: number
  readonly resetsAt?: string
}

/** Describes which requests a budget counts, such as `HTTPRoute chat, each apiKey.team`. */
export function whoOf({ spec }: Pick<ConfiguredBudget, 'spec'>): string {
  const { targetRefs, when, each } = spec
  const targets = targetRefs.map(({ kind, name, sectionName }) =>
    [kind, name, ...(sectionName === undefined ? [] : [sectionName])].join(' '),
  )
  return [
    targets.join(', '),
    ...(when === undefined ? [] : [`when ${when}`]),
    ...(each === undefined ? [] : [`each ${each}`]),
  ].join(', ')
}

/** One row for a budget. */
export function budgetRow(budget: ConfiguredBudget, time: number): BudgetRow {
  const { name, spec, state } = budget
  const { unit, amount: limit } = spec.limit
  const row = { budget: name, who: whoOf(budget), unit }
  if (state === undefined || state.window === 0) return { ...row, limit }
  const { each } = spec
  const resetsAt = resetTime(state)
  const amount = (of: bigint) => budgetAmount(unit, of)
  const totals = budgetTotals(state, valuesOf(state, each), time)
  const [only] = totals.highest
  const isOne = each === undefined && only !== undefined
  return {
    ...row,
    limit: amount(isOne ? only.limit : BigInt(state.definition.amount)),
    spent: amount(totals.spent),
    reserved: amount(totals.reserved),
    ...(isOne && { remaining: amount(only.remaining), requests: only.requests }),
    ...(each !== undefined && { values: totals.values, exhausted: totals.exhausted }),
    ...(resetsAt !== undefined && { resetsAt }),
  }
}

/** A row for each value with a balance; that of which the greatest part is spent is first. */
function valueRows(budget: ConfiguredBudget, time: number): BudgetRow[] {
  const { name, spec, state } = budget
  if (state === undefined || state.window === 0) return []
  const { unit } = spec.limit
  const resetsAt = resetTime(state)
  const amount = (of: bigint) => budgetAmount(unit, of)
  return valuesOf(state, spec.each)
    .map((value) => valueBalance(state, value, time))
    .sort((a, b) => {
      const [left, right] = [a.spent * b.limit, b.spent * a.limit]
      return left === right ? compareText(a.value, b.value) : left > right ? -1 : 1
    })
    .map(({ value, limit, spent, reserved, remaining, requests }) => ({
      budget: name,
      who: whoOf(budget),
      ...(spec.each !== undefined && { value }),
      unit,
      limit: amount(limit),
      spent: amount(spent),
      reserved: amount(reserved),
      remaining: amount(remaining),
      requests,
      ...(resetsAt !== undefined && { resetsAt }),
    }))
}

const columns = [
  'budget',
  'who',
  'value',
  'unit',
  'limit',
  'spent',
  'reserved',
  'remaining',
  'requests',
  'values',
  'exhausted',
  'resetsAt',
] as const satisfies readonly (keyof BudgetRow)[]

/** A table with the columns that some row has. */
export function budgetTable(rows: readonly BudgetRow[]): string {
  const shown = columns.filter((name) => rows.some((row) => row[name] !== undefined))
  const head = shown.map((name) => (name === 'resetsAt' ? 'RESETS' : name.toUpperCase()))
  const cell = (of: BudgetRow[keyof BudgetRow]) => (of === undefined || of === '' ? '-' : `${of}`)
  return table([head, ...rows.map((row) => shown.map((name) => cell(row[name])))])
}

export async function listBudgets(options: ListOptions, out: Output): Promise<number> {
  const rows = await withLedger(options, out.report, async ({ budgets, fold }) => {
    const time = Math.max(Date.now(), fold.time)
    const rowsOf = (one: ConfiguredBudget) =>
      options.values === true ? valueRows(one, time) : [budgetRow(one, time)]
    noteEndedWindows(budgets, out.report)
    return budgets.flatMap(rowsOf)
  })
  if (options.output === 'json') out.print(JSON.stringify({ budgets: rows }, undefined, 2))
  else if (options.output === 'csv') {
    out.print(csvRow(columns))
    for (const row of rows) out.print(csvRow(columns.map((name) => `${row[name] ?? ''}`)))
  } else if (rows.length > 0) out.print(budgetTable(rows))
  return rows.length > 0 ? exitCode.success : exitCode.negative
}

/** A gateway begins the next window within a second, so none runs. */
function noteEndedWindows(budgets: readonly ConfiguredBudget[], report: Output['report']): void {
  const now = Date.now()
  const ended = budgets.filter(({ state }) => state?.endsAt !== undefined && state.endsAt < now)
  if (ended.length === 0) return
  const names = ended.map(({ name }) => name).join(', ')
  report(`the window has ended, and the next one begins when a gateway runs: ${names}`)
}

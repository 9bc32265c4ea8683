/** Writes spend and comparisons as tables, CSV and JSON. */
import { usdRounded, usdText } from '../../../engines/messages/cost/money.ts'
import type { SpendComparison, SpendDifference } from '../../../past/spend/compare.ts'
import { csvRow } from '../../../past/spend/csv.ts'
import type { SpendRow, SpendSum, SpendTable } from '../../../past/spend/sums.ts'
import { table as columns } from '../shared/output.ts'

export type SpendFormat = 'text' | 'json' | 'csv'

/** Places of amounts in tables. JSON and CSV have all. */
const shownPlaces = 6

/** The counts of a row, by their names in JSON and CSV and by those in tables. */
const counts = [
  ['requests', 'requests'],
  ['inputTokens', 'input'],
  ['cacheReadTokens', 'cache read'],
  ['cacheWriteTokens', 'cache write'],
  ['outputTokens', 'output'],
] as const satisfies readonly (readonly [keyof SpendSum, string])[]

/** What is not certain about a cost. */
const doubts = ['unknown', 'partial', 'estimated'] as const

export function spendOutput(table: SpendTable, format: SpendFormat): readonly string[] {
  if (format === 'json') return [JSON.stringify(spendJson(table), undefined, 2)]
  return format === 'csv' ? spendCsv(table) : spendText(table)
}

function spendText(table: SpendTable): string[] {
  const { dimensions, total } = table
  const hasHits = total.recorded.hits > 0n
  const head = [
    ...dimensions,
    ...counts.map(([, name]) => name),
    'USD',
    'without price',
    ...(hasHits ? ['hits', 'saved USD'] : []),
    ...(total.whatIf ? ['what-if USD', 'difference', 'without price'] : []),
  ]
  const line = ({ values, recorded, whatIf }: SpendRow) => [
    ...dimensions.map((_, at) => values[at] || '-'),
    ...counts.map(([name]) => `${recorded[name]}`),
    usdRounded(recorded.cost, shownPlaces),
    `${recorded.unknown}`,
    ...(hasHits ? [`${recorded.hits}`, usdRounded(recorded.saved, shownPlaces)] : []),
    ...(whatIf ? whatIfCells(recorded, whatIf) : []),
  ]
  const sum = line({ ...total, values: ['total'] })
  return [columns([head, ...table.rows().map(line), sum]), ...doubtTexts(total)]
}

function whatIfCells(recorded: SpendSum, whatIf: SpendSum): string[] {
  const apart = whatIf.cost - recorded.cost
  const sign = apart > 0n ? '+' : ''
  return [
    usdRounded(whatIf.cost, shownPlaces),
    `${sign}${usdRounded(apart, shownPlaces)}`,
    `${whatIf.unknown}`,
  ]
}

function doubtTexts({ recorded }: SpendRow): string[] {
  const { unknown, partial, estimated } = recorded
  const texts = [
    unknown > 0n && `${unknown} without a known price: their cost is not in the sums.`,
    partial > 0n && `${partial} with a part that has no known price: the sums lack that part.`,
    estimated > 0n &&
      `${estimated} whose usage is estimated, because the provider did not report it.`,
  ]
  return texts.filter((text) => text !== false).map((text) => `Requests: ${text}`)
}

function spendCsv(table: SpendTable): string[] {
  const { dimensions, total } = table
  const names = [
    ...dimensions,
    ...counts.map(([name]) => name),
    'costUsd',
    ...doubts,
    'hits',
    'savedUsd',
    ...(total.whatIf ? ['whatIfCostUsd', 'whatIfUnknown'] : []),
  ]
  const row = ({ values, recorded, whatIf }: SpendRow) =>
    csvRow([
      ...values,
      ...counts.map(([name]) => `${recorded[name]}`),
      usdText(recorded.cost),
      ...doubts.map((name) => `${recorded[name]}`),
      `${recorded.hits}`,
      usdText(recorded.saved),
      ...(whatIf ? [usdText(whatIf.cost), `${whatIf.unknown}`] : []),
    ])
  return [csvRow(names), ...table.rows().map(row)]
}

function spendJson(table: SpendTable): unknown {
  const { dimensions, total } = table
  const row = ({ values, recorded, whatIf }: SpendRow) => ({
    ...Object.fromEntries(values.map((value, at) => [dimensions[at] ?? '', value])),
    ...sumJson(recorded),
    ...(whatIf && { whatIf: sumJson(whatIf) }),
  })
  return { rows: table.rows().map(row), total: row(total) }
}

/** Amounts are decimals as text, because numbers of JSON are not exact. */
const sumJson = (sum: SpendSum) => ({
  ...Object.fromEntries(counts.map(([name]) => [name, Number(sum[name])])),
  costUsd: usdText(sum.cost),
  ...Object.fromEntries(doubts.map((name) => [name, Number(sum[name])])),
  hits: Number(sum.hits),
  savedUsd: usdText(sum.saved),
})

export function comparisonOutput(found: SpendComparison, format: SpendFormat): readonly string[] {
  const { differences, compared } = found
  const names = ['provider', 'day', 'model', 'what', 'recorded', 'billed', 'difference', 'unknown']
  if (format === 'json') {
    const rows = differences.map((one) => {
      const cells = cellsOf(one, usdText)
      return Object.fromEntries(names.map((name, at) => [name, cells[at]]))
    })
    return [JSON.stringify({ compared, differences: rows }, undefined, 2)]
  }
  if (format === 'csv') {
    return [csvRow(names), ...differences.map((one) => csvRow(cellsOf(one, usdText)))]
  }
  const shown = (amount: bigint) => usdRounded(amount, shownPlaces)
  const rows = differences.map((one) => cellsOf(one, shown).map((cell) => cell || '-'))
  const end = `${differences.length} of ${compared} sums differ.`
  return differences.length === 0 ? [end] : [columns([names, ...rows]), end]
}

function cellsOf(one: SpendDifference, usd: (amount: bigint) => string): string[] {
  const { provider, day, model, what, recorded, billed, unknown } = one
  const text = (amount: bigint) => (what === 'cost' ? usd(amount) : `${amount}`)
  const apart = billed - recorded
  const sign = apart > 0n ? '+' : ''
  const cells = [text(recorded), text(billed), `${sign}${text(apart)}`, `${unknown}`]
  return [provider, day, model, what, ...cells]
}

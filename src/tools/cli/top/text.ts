/** The tables of `sluice top`. */
import type { AnsweredSeries, SeriesAnswer, SeriesSums } from '../../../past/series/answer.ts'
import type { SeriesGroup } from '../../../past/series/bucket.ts'
import { table } from '../shared/output.ts'

const figures = new Intl.NumberFormat('en', { maximumSignificantDigits: 3 })
const wholes = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })
const currency = { style: 'currency', currency: 'USD' } as const
const dollars = new Intl.NumberFormat('en', currency)
const cents = new Intl.NumberFormat('en', { ...currency, maximumSignificantDigits: 3 })

interface Column {
  readonly title: string
  readonly of: (sums: SeriesSums, seconds: number) => string
}

const share = (part: number, { requests }: SeriesSums): string =>
  part === 0 || requests === 0 ? '-' : `${figures.format((100 * part) / requests)} %`
const ms = (value: number | undefined): string =>
  value === undefined ? '-' : `${figures.format(value)} ms`
const usd = (value: number): string => (value < 1 ? cents : dollars).format(value)
const count = (value: number): string => (value === 0 ? '-' : wholes.format(value))

const columns = {
  requests: { title: 'REQUESTS', of: ({ requests }) => wholes.format(requests) },
  calls: { title: 'CALLS', of: ({ requests }) => wholes.format(requests) },
  messages: { title: 'MESSAGES', of: ({ requests }) => wholes.format(requests) },
  checks: { title: 'CHECKS', of: ({ requests }) => wholes.format(requests) },
  rate: { title: 'PER S', of: ({ requests }, seconds) => figures.format(requests / seconds) },
  errors: { title: 'ERRORS', of: (sums) => share(sums.errors, sums) },
  refused: { title: 'REFUSED', of: (sums) => share(sums.refused, sums) },
  p50: { title: 'P50', of: ({ p50Ms }) => ms(p50Ms) },
  p99: { title: 'P99', of: ({ p99Ms }) => ms(p99Ms) },
  tokens: { title: 'TOKENS', of: ({ tokens }) => count(tokens) },
  cost: {
    title: 'COST',
    of: ({ cost, unpriced }) =>
      cost === 0 && unpriced === 0
        ? '-'
        : `${usd(cost)}${unpriced > 0 ? ` + ${unpriced} of unknown price` : ''}`,
  },
  hits: {
    title: 'CACHE HITS',
    of: ({ hits, saved }) =>
      hits === 0 ? '-' : `${count(hits)}${saved === 0 ? '' : ` (${usd(saved)})`}`,
  },
  cause: {
    title: 'MOST FREQUENT ERROR',
    of: ({ causes: [first] }) => (first === undefined ? '-' : `${first.name} (${first.count})`),
  },
  verdicts: {
    title: 'VERDICTS',
    of: ({ verdicts }) => verdicts.map(({ name, count: times }) => `${name} ${times}`).join(', '),
  },
} satisfies Readonly<Record<string, Column>>

const { requests, calls, messages, checks, rate, errors, refused } = columns
const { p50, p99, tokens, cost, hits, cause, verdicts } = columns
const columnsOf: Readonly<Record<SeriesGroup, readonly Column[]>> = {
  all: [requests, rate, errors, refused, p50, p99, tokens, cost, cause],
  route: [requests, rate, errors, refused, p50, p99, tokens, cost, cause],
  backend: [requests, rate, errors, p50, p99, cause],
  model: [requests, rate, errors, p50, p99, tokens, cost, hits, cause],
  key: [requests, rate, errors, tokens, cost],
  tool: [calls, rate, errors, p50, p99],
  guard: [checks, verdicts],
  target: [messages, rate, errors],
  rule: [checks, verdicts],
}

const nameOf = ({ name, isOther }: AnsweredSeries): string => (isOther ? '(all others)' : name)

/** Returns the tables of all groups that have series. Lines are cut to `width`, if given. */
export function topText(answers: readonly SeriesAnswer[], width?: number): string {
  const [first] = answers
  if (first === undefined || first.series.length === 0) {
    return 'Nothing was counted in this time.'
  }
  const tables = answers
    .filter(({ series }) => series.length > 0)
    .map((answer) => groupTable(answer))
  const since = first.from.slice(0, 19).replace('T', ' ')
  const lines = `since ${since}Z\n\n${tables.join('\n\n')}`.split('\n')
  return lines.map((line) => (width === undefined ? line : line.slice(0, width))).join('\n')
}

function groupTable({ by, from, to, series }: SeriesAnswer): string {
  const seconds = Math.max(1, (Date.parse(to) - Date.parse(from)) / 1_000)
  const shown = columnsOf[by]
  return table([
    [by.toUpperCase(), ...shown.map(({ title }) => title)],
    ...series.map((one) => [nameOf(one), ...shown.map(({ of }) => of(one.sums, seconds))]),
  ])
}

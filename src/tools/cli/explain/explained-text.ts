/** Formats the explanation of a recorded request. */

import { usdText } from '../../../engines/messages/cost/money.ts'
import { budgetsOf, isOfBudget } from '../../../past/decisions/budgets.ts'
import type { RecordedDecision } from '../../../past/decisions/record.ts'
import { cacheHitOf, costLines, embeddingSpendOf, spendOf } from '../../../past/spend/entry.ts'
import { backendText, requestLine, ruleText } from '../decisions/text.ts'
import { table } from '../shared/output.ts'
import { printable } from '../shared/printable.ts'
import { requiredChange } from './decision-change.ts'
import type { ExplainedStep, Explanation } from './explained-decision.ts'

type Row = readonly string[]

/** Fields of the access log with the provider of the last attempt. */
const providerField = 'model.provider'
const groupField = 'model.group'

export function explanationText(explanation: Explanation): string[] {
  const { decision, problem, steps } = explanation
  const change = requiredChange(decision, steps)
  return [
    ...headText(decision),
    ...(problem === undefined ? [] : [`object versions are unknown: ${problem}`]),
    ...section('Routing', tableLines(routingRows(explanation))),
    ...section('Steps', steps.length === 0 ? [] : stepLines(steps)),
    ...section('Attempts', tableLines(attemptRows(decision))),
    ...section('Cost', tableLines(costRows(decision))),
    ...section('Budgets', tableLines(budgetRows(decision))),
    ...section('Details', tableLines(detailRows(decision))),
    ...section('Response', tableLines(responseRows(decision))),
    '',
    `To change the outcome: ${change}`,
  ].map(printable)
}

function section(title: string, lines: readonly string[]): string[] {
  if (lines.length === 0) return []
  return ['', title, ...lines.map((line) => `  ${line}`)]
}

const tableLines = (rows: readonly Row[]): string[] =>
  rows.length === 0 ? [] : table(rows).split('\n')

function headText({ id, time, proxy, worker, position, request }: RecordedDecision): string[] {
  const { protocol, scheme, source } = request
  return [
    `${requestLine(request)}`,
    `id ${id}, ${time}, ${protocol} over ${scheme} from ${source}`,
    `proxy ${proxy}, worker ${worker}, configuration at position ${position}`,
  ]
}

/** The version of an object, such as `generation 2` and `event 40, since 2026-01-31T12:00:00.000Z`. */
function versionCells({ generation, event, since }: Partial<ExplainedStep>): Row {
  if (generation === undefined) return []
  const put = event === undefined ? 'in the stored state' : `event ${event}, since ${since}`
  return [`generation ${generation}`, put]
}

function routingRows({ decision, gateway, route }: Explanation): Row[] {
  const { listener } = decision.route
  const { port } = decision.request
  const rows: Row[] =
    gateway === undefined
      ? [[`port ${port}`, 'no listener takes the host']]
      : [[`port ${port}`, `listener ${listener} of ${gateway.object}`, ...versionCells(gateway)]]
  if (gateway !== undefined && route === undefined) rows.push(['route', 'none'])
  if (route !== undefined) {
    rows.push(['route', ruleText(decision.route) ?? '', ...versionCells(route)])
  }
  const backend = backendText(decision.route)
  return backend === undefined ? rows : [...rows, ['backend', backend]]
}

/** Formats each object of a step as one line, followed by what the step found. */
function stepLines(steps: readonly ExplainedStep[]): string[] {
  const rows = steps.map(stepRows)
  const lines = table(rows.flat()).split('\n')
  return rows.flatMap(({ length }, at) => {
    const reason = steps[at]?.reason
    return [...lines.splice(0, length), ...(reason === undefined ? [] : [`    ${reason}`])]
  })
}

function stepRows({ step, verdict, object, from, ...version }: ExplainedStep): Row[] {
  const others = (from ?? []).toReversed().filter((other) => other.object !== object)
  return [
    [step, verdict, object ?? '', ...versionCells(version)],
    ...others.map((other) => ['', 'with', other.object, ...versionCells(other)]),
  ]
}

function attemptRows({ attempts, route, details }: RecordedDecision): Row[] {
  if (attempts.length === 0) return []
  const failed = attempts.map(({ endpoint, failure, provider, group }, at) => [
    `${at + 1}`,
    endpoint,
    failure,
    ...providerCells(provider, group),
  ])
  const last = providerCells(details[providerField], details[groupField])
  return [...failed, [`${attempts.length + 1}`, route.endpoint ?? '', 'last', ...last]]
}

const providerCells = (
  provider: string | number | undefined,
  group: string | number | undefined,
): Row => (provider === undefined ? [] : [`provider ${provider} of group ${group}`])

/** Lists the budgets that applied: what each has reserved and charged, or why it has refused the request. */
const budgetRows = (decision: RecordedDecision): Row[] =>
  budgetsOf(decision).map(({ budget, value, verdict = '', reserved, charged }) => [
    budget,
    value === undefined ? '' : JSON.stringify(value),
    verdict,
    reserved === undefined ? '' : `reserved ${reserved}`,
    charged === undefined ? '' : `charged ${charged}`,
  ])

/** Fields with parts of the cost, and those of budgets, are in sections of their own. */
const detailRows = ({ details }: RecordedDecision): Row[] =>
  Object.entries(details).flatMap(([name, value]) =>
    name.startsWith('cost.') || isOfBudget(name) ? [] : [[name, `${value}`]],
  )

/** Shows the cost of the embedding with which a request was compared with similar ones. */
function embeddingRows(decision: RecordedDecision): Row[] {
  const entry = embeddingSpendOf(decision)
  if (entry === undefined) return []
  const { model, usage, cost } = entry
  const total = cost === undefined ? 'unknown' : `${usdText(cost)} USD`
  return [['embedding', total, `(${usage.input} tokens of ${model})`]]
}

/** Lists the cost of a request to a language model, and what it is made of. */
function costRows(decision: RecordedDecision): Row[] {
  const hit = cacheHitOf(decision)
  if (hit !== undefined) {
    const saved =
      hit.saved === undefined ? 'of unknown cost' : `that had cost ${usdText(hit.saved)} USD`
    const { similarity } = hit
    const similar = similarity === undefined ? '' : ` to a similar request (${similarity})`
    return [['cost', '0 USD', `(a stored answer${similar} ${saved})`], ...embeddingRows(decision)]
  }
  const entry = spendOf(decision)
  if (entry === undefined) return embeddingRows(decision)
  const { cost, status, usage } = entry
  const lines = costLines(entry)
  const ofTokens = lines.reduce((sum, line) => sum + (line.cost ?? 0n), 0n)
  const calls = Object.entries(usage.calls ?? {}).map(([name, count]) => `${count} ${name}`)
  const total = cost === undefined ? 'unknown' : `${usdText(cost)} USD`
  return [
    ['cost', total, status === 'unknown' ? '' : `(${status})`],
    ...(usage.service === undefined ? [] : [['tier', usage.service]]),
    ...lines.map(({ counter, tokens, rate, cost: part }) => [
      counter,
      `${tokens} tokens`,
      rate === undefined ? 'no known price' : `${rate} USD per million`,
      part === undefined ? '' : `${usdText(part)} USD`,
    ]),
    ...(calls.length > 0 && cost !== undefined
      ? [['calls', calls.join(', '), '', `${usdText(cost - ofTokens)} USD`]]
      : []),
    ...embeddingRows(decision),
  ]
}

function responseRows({ response }: RecordedDecision): Row[] {
  const { status, reason, error, detail, ending, requestBytes, responseBytes } = response
  const decided = error ?? detail
  return [
    ['status', `${status}, ${reason}${decided === undefined ? '' : `: ${decided}`}`],
    ['ending', `${ending} after ${response.durationMs} ms`],
    ['bytes', `${requestBytes} received, ${responseBytes} sent`],
  ]
}

/**
 * Reads exports of what vendors say was used or what it costs:
 *
 * - OpenAI: pages of `/v1/organization/usage/completions` (and `embeddings`) and of `/v1/organization/costs`
 * - Anthropic: pages of `/v1/organizations/usage_report/messages` and of `/v1/organizations/cost_report`
 * - Amazon Bedrock: invocation logs, one JSON object per line, and cost and usage reports as CSV
 *
 * JSON may be one page, a list of pages, or one page per line.
 */

import { type Money, readUsd } from '../../engines/messages/cost/money.ts'
import { isObject, type JsonObject } from '../../ground/base/json-object.ts'
import { fail, type Outcome, succeed } from '../../ground/base/outcome.ts'
import { readCsv } from './csv.ts'

/** What a vendor counts for one model on one day, in UTC. What it does not say is undefined. */
export interface BillLine {
  /** `gen_ai.provider.name`. */
  readonly provider: string
  /** Such as 2026-11-28. */
  readonly day: string
  /** Empty if the vendor does not say it. */
  readonly model: string
  readonly requests?: bigint
  /** Includes tokens that were read from a cache or written to it. */
  readonly inputTokens?: bigint
  readonly outputTokens?: bigint
  readonly cost?: Money
}

const openai = 'openai'
const anthropic = 'anthropic'
const bedrock = 'aws.bedrock'

/** Reads an export. The problem names the file. */
export function readBill(text: string, file: string): Outcome<readonly BillLine[], string> {
  const start = text.trimStart()[0]
  const pages = start === '{' || start === '[' ? readJson(text) : undefined
  const read = pages === undefined ? linesOfReport(text) : pages.flatMap(linesOfPage)
  const lines = read.filter((line) => line !== undefined)
  if (lines.length > 0) return succeed(lines)
  return fail(
    `${file}: neither a page of the usage or costs of OpenAI or Anthropic, nor an invocation log or a cost and usage report of Amazon Bedrock`,
  )
}

/** Returns the objects of one JSON text, or of one on each line. */
function readJson(text: string): unknown[] | undefined {
  const whole = parsed(text)
  if (Array.isArray(whole)) return whole
  if (whole !== undefined) return [whole]
  const lines = text.split('\n').filter((line) => line.trim() !== '')
  const values = lines.map(parsed)
  return values.includes(undefined) ? undefined : values
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function linesOfPage(page: unknown): (BillLine | undefined)[] {
  if (!isObject(page)) return []
  if (page.schemaType === 'ModelInvocationLog') return [invocationLine(page)]
  if (!Array.isArray(page.data)) return []
  return page.data.filter(isObject).flatMap((bucket) => {
    const results = Array.isArray(bucket.results) ? bucket.results.filter(isObject) : []
    const day = dayOf(bucket.starting_at ?? bucket.start_time)
    if (day === undefined) return []
    return results.map((result) => resultLine(day, result, bucket.starting_at !== undefined))
  })
}

function resultLine(day: string, result: JsonObject, isAnthropic: boolean): BillLine | undefined {
  const { object: kind, amount } = result
  if (isAnthropic) return amount === undefined ? usageOfC(day, result) : costOfC(day, result)
  if (kind === 'organization.costs.result') return costOfA(day, result)
  return typeof kind === 'string' && kind.startsWith('organization.usage.')
    ? usageOfA(day, result)
    : undefined
}

function usageOfA(day: string, result: JsonObject): BillLine {
  return {
    provider: openai,
    day,
    model: nameOf(result.model),
    requests: countOf(result.num_model_requests),
    inputTokens: countOf(result.input_tokens),
    outputTokens: countOf(result.output_tokens),
  }
}

/** Line items begin with the name of the model, such as `gpt-4o-2024-08-06, input`. */
function costOfA(day: string, result: JsonObject): BillLine | undefined {
  const amount = isObject(result.amount) ? result.amount : {}
  if (`${amount.currency}`.toLowerCase() !== 'usd') return undefined
  const [model] = nameOf(result.line_item).split(',')
  return { provider: openai, day, model: model ?? '', cost: usdOf(amount.value, 0) }
}

function usageOfC(day: string, result: JsonObject): BillLine {
  const written = isObject(result.cache_creation) ? result.cache_creation : {}
  return {
    provider: anthropic,
    day,
    model: nameOf(result.model),
    inputTokens:
      countOf(result.uncached_input_tokens) +
      countOf(result.cache_read_input_tokens) +
      countOf(written.ephemeral_5m_input_tokens) +
      countOf(written.ephemeral_1h_input_tokens),
    outputTokens: countOf(result.output_tokens),
  }
}

/** Amounts are in cents. */
const costOfC = (day: string, result: JsonObject): BillLine | undefined =>
  result.currency === 'USD'
    ? { provider: anthropic, day, model: nameOf(result.model), cost: usdOf(result.amount, 2) }
    : undefined

function invocationLine(log: JsonObject): BillLine | undefined {
  const [input, output] = [log.input, log.output].map((side) => (isObject(side) ? side : {}))
  const day = dayOf(log.timestamp)
  if (day === undefined || log.errorCode !== undefined) return undefined
  return {
    provider: bedrock,
    day,
    model: nameOf(log.modelId).split('/').at(-1) ?? '',
    requests: 1n,
    inputTokens:
      countOf(input?.inputTokenCount) +
      countOf(input?.cacheReadInputTokenCount) +
      countOf(input?.cacheWriteInputTokenCount),
    outputTokens: countOf(output?.outputTokenCount),
  }
}

/** Names of columns in cost and usage reports, of both versions, as `plainColumn` writes them. */
const columns = {
  day: ['lineitemusagestartdate'],
  cost: ['lineitemunblendedcost'],
  product: ['lineitemproductcode', 'productservicecode'],
} as const

const plainColumn = (name: string): string => name.toLowerCase().replaceAll(/[^a-z0-9]/g, '')

/** Reports name usage types instead of models, so that only days can be compared. */
function linesOfReport(text: string): (BillLine | undefined)[] {
  const [head = [], ...rows] = readCsv(text)
  const names = head.map(plainColumn)
  const at = (wanted: readonly string[]) => names.findIndex((name) => wanted.includes(name))
  const [dayAt, costAt, productAt] = [at(columns.day), at(columns.cost), at(columns.product)]
  if (dayAt < 0 || costAt < 0) return []
  return rows.map((row) => {
    const day = dayOf(row[dayAt])
    const isOther = productAt >= 0 && !/bedrock/i.test(row[productAt] ?? '')
    if (day === undefined || isOther) return undefined
    return { provider: bedrock, day, model: '', cost: usdOf(row[costAt], 0) }
  })
}

const nameOf = (value: unknown): string => (typeof value === 'string' ? value.toLowerCase() : '')

const countOf = (value: unknown): bigint =>
  Number.isSafeInteger(value) && Number(value) >= 0 ? BigInt(Number(value)) : 0n

/** Reads seconds since the epoch, or a time such as 2026-11-28T00:00:00Z. */
function dayOf(time: unknown): string | undefined {
  const ms = typeof time === 'number' ? time * 1_000 : Date.parse(`${time}`)
  return Number.isFinite(ms) && Math.abs(ms) < 8e15
    ? new Date(ms).toISOString().slice(0, 10)
    : undefined
}

/** Reads an amount in USD times ten to the power of `shift`, rounded to 10⁻¹² USD. */
function usdOf(value: unknown, shift: number): Money {
  const [, sign, whole = '', fraction = '', exponent = '0'] =
    /^(-?)(\d{1,15})(?:\.(\d{1,40}))?(?:e([+-]?\d{1,2}))?$/i.exec(`${value}`.trim()) ?? []
  if (whole === '') return 0n
  const digits = whole + fraction
  const point = whole.length + Number(exponent) - shift
  const padded = point < 0 ? '0'.repeat(-point) + digits : digits.padEnd(point, '0')
  const at = Math.max(point, 0)
  const amount = readUsd(`${padded.slice(0, at) || '0'}.${padded.slice(at).slice(0, 12) || '0'}`)
  return sign === '-' ? -(amount ?? 0n) : (amount ?? 0n)
}

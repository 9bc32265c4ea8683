/** `sluice spend` adds up what recorded requests have cost, and compares the sums with the bills of vendors. */
import type { ModelCatalog } from '../../../engines/messages/catalog/catalog.ts'
import { BatchesOnce } from '../../../past/spend/batches.ts'
import { type BillLine, readBill } from '../../../past/spend/bills.ts'
import { BillComparison } from '../../../past/spend/compare.ts'
import {
  type CacheHit,
  cacheHitOf,
  embeddingSpendOf,
  type OtherModel,
  repriced,
  type SpendEntry,
  spendOf,
} from '../../../past/spend/entry.ts'
import { SpendTable } from '../../../past/spend/sums.ts'
import { readCatalogs, readText } from '../catalog/files.ts'
import { type DecisionSource, eachDecision, timeOf } from '../decisions/source.ts'
import { exitCode, type Output, UsageError } from '../shared/output.ts'
import { comparisonOutput, type SpendFormat, spendOutput } from './text.ts'

export interface SpendOptions extends DecisionSource {
  readonly by: string
  readonly since?: string
  readonly until?: string
  readonly model?: readonly string[]
  readonly modelCatalog?: readonly string[]
  /** Pairs such as `gpt-4o=gpt-4o-mini`. */
  readonly as?: readonly string[]
  readonly compare?: readonly string[]
  readonly output: SpendFormat
}

/** @throws UsageError */
export async function spend(options: SpendOptions, out: Output): Promise<number> {
  const { recordDir, nats, since, compare = [] } = options
  if ((recordDir === undefined) === (nats === undefined)) {
    throw new UsageError('name either --record-dir or --nats')
  }
  const whatIf = await whatIfOf(options, out.report)
  const table = new SpendTable(dimensionsOf(options.by), whatIf !== undefined)
  const bills = await readBills(compare)
  const comparison = bills && new BillComparison(bills)
  const accepts = testOf(options)
  const samples = new Set<string>()
  const batches = new BatchesOnce()
  const add = (entry: SpendEntry): void => {
    table.add(entry, whatIf?.(entry))
    comparison?.add(entry)
  }
  const { isReadable } = await eachDecision(options, since ? { since } : {}, out.report, (one) => {
    if (one.setting !== 'all') samples.add(one.setting ?? 'errors')
    const entry = spendOf(one)
    if (entry !== undefined && accepts(entry) && batches.counts(entry)) add(entry)
    const embedding = embeddingSpendOf(one)
    if (embedding !== undefined && accepts(embedding)) add(embedding)
    const hit = cacheHitOf(one)
    if (hit !== undefined && accepts(hit)) table.addHit(hit)
  })
  for (const entry of batches.entries()) add(entry)
  if (!isReadable) return exitCode.usage
  if (samples.size > 0) {
    out.report(
      `Not all requests were recorded (--record ${[...samples].join(', ')}), so sums are too low. Set --record all.`,
    )
  }
  const compared = comparison?.result()
  const lines =
    compared === undefined
      ? spendOutput(table, options.output)
      : comparisonOutput(compared, options.output)
  for (const line of lines) out.print(line)
  const isAgreed = compared === undefined || compared.differences.length === 0
  const isEmpty = table.total.recorded.requests === 0n
  return isAgreed && !isEmpty ? exitCode.success : exitCode.negative
}

function dimensionsOf(by: string): string[] {
  const names = by.split(',').map((name) => name.trim())
  const wrong = names.find((name) => !/^(identity\.)?[A-Za-z]\w*$/.test(name))
  if (wrong === undefined) return [...new Set(names)]
  throw new UsageError(`--by: ${JSON.stringify(wrong)} is not the name of a dimension`)
}

function testOf({ until, model: models }: SpendOptions): (entry: SpendEntry | CacheHit) => boolean {
  const end = until === undefined ? undefined : timeOf(until, '--until')
  return ({ decision: { time }, model }) =>
    (end === undefined || time < end) && (models === undefined || models.includes(model))
}

async function readBills(paths: readonly string[]): Promise<readonly BillLine[] | undefined> {
  if (paths.length === 0) return undefined
  const bills: BillLine[] = []
  for (const path of paths) {
    const read = readBill(await readText(path), path)
    if (!read.ok) throw new UsageError(read.problems.join('\n'))
    bills.push(...read.value)
  }
  return bills
}

/** Returns what prices a request otherwise; undefined if the user asks for nothing else. */
async function whatIfOf(
  { modelCatalog, as = [] }: SpendOptions,
  report: Output['report'],
): Promise<((entry: SpendEntry) => SpendEntry) | undefined> {
  if (modelCatalog === undefined && as.length === 0) return undefined
  const { catalog, problems } = readCatalogs(modelCatalog)
  for (const problem of problems) report(problem)
  const others = new Map(as.map((pair) => otherOf(pair)))
  return (entry) => {
    const other = others.get(entry.model)
    return repriced(entry, catalog, other === undefined ? other : atProvider(other, entry, catalog))
  }
}

function otherOf(pair: string): [string, string] {
  const [, model, other] = /^([^=]+)=([^=]+)$/.exec(pair) ?? []
  if (model !== undefined && other !== undefined) return [model, other]
  throw new UsageError(`--as ${pair} is not MODEL=OTHER`)
}

/** The other model may have its provider in front; otherwise it is at the provider of the request. */
function atProvider(other: string, { provider }: SpendEntry, catalog: ModelCatalog): OtherModel {
  const slash = other.indexOf('/')
  const [id, model] = [other.slice(0, Math.max(slash, 0)), other.slice(slash + 1)]
  return catalog.hasProvider(id) ? { provider: id, model } : { provider, model: other }
}

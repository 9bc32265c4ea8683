/** When API keys were used and what their requests have cost, from decision records. */
import { type Money, usdRounded } from '../../../engines/messages/cost/money.ts'
import { BatchesOnce } from '../../../past/spend/batches.ts'
import { embeddingSpendOf, type SpendEntry, spendOf } from '../../../past/spend/entry.ts'
import { eachDecision } from '../decisions/source.ts'

export interface KeyUsage {
  /** Start of the last request, such as 2026-11-29T08:00:00.000Z. */
  readonly lastUsed: string
  readonly requests: number
  /** What is known of the cost. */
  readonly cost: Money
}

export interface KeyUsages {
  readonly byKey: ReadonlyMap<string, KeyUsage>
  /** Whether only some of the requests were recorded. */
  readonly isSample: boolean
}

interface UsageSource {
  readonly recordDir: string
  /** The dimension of the identity that has the name of the key. */
  readonly dimension: string
}

/** @throws UsageError if the folder cannot be read */
export async function usageOfKeys(
  { recordDir, dimension }: UsageSource,
  report: (text: string) => void,
): Promise<KeyUsages> {
  const byKey = new Map<string, KeyUsage>()
  let isSample = false
  const batches = new BatchesOnce()
  const costOf = (entry: SpendEntry | undefined): bigint =>
    entry === undefined || !batches.counts(entry) ? 0n : (entry.cost ?? 0n)
  await eachDecision({ recordDir }, {}, report, (decision) => {
    isSample ||= decision.setting !== 'all'
    const name = decision.details[`identity.${dimension}`]
    if (typeof name !== 'string') return
    const before = byKey.get(name)
    const { time } = decision
    byKey.set(name, {
      lastUsed: before !== undefined && before.lastUsed > time ? before.lastUsed : time,
      requests: (before?.requests ?? 0) + 1,
      cost: (before?.cost ?? 0n) + costOf(spendOf(decision)) + costOf(embeddingSpendOf(decision)),
    })
  })
  for (const { decision, cost = 0n } of batches.entries()) {
    const name = `${decision.details[`identity.${dimension}`]}`
    const usage = byKey.get(name)
    if (usage !== undefined) byKey.set(name, { ...usage, cost: usage.cost + cost })
  }
  return { byKey, isSample }
}

export const usageHead = ['LAST USED', 'REQUESTS', 'USD'] as const

export const usageCells = (usage: KeyUsage | undefined): string[] =>
  usage === undefined
    ? ['never', '0', '0']
    : [usage.lastUsed, `${usage.requests}`, usdRounded(usage.cost, 6)]

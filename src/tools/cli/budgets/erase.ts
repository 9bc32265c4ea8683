/** `sluice budgets erase` erases a value of `each` from the ledger. */
import { ErasureError, eraseValue } from '../../../control/ledger/shorten-ledger.ts'
import { isLocked } from '../../../control/plane/file-lock.ts'
import { defaultAuthor } from '../recording/operator-change.ts'
import { type CommandResult, exitCode, type Output, UsageError } from '../shared/output.ts'
import { configuredBudgets, type LedgerSource, withLedgerLog } from './ledger.ts'

export interface EraseOptions extends LedgerSource {
  readonly account: string
  readonly reason: string
  readonly author?: string
}

/** The ledger releases the allowances of a proxy that has died after 90 seconds. */
const patienceMs = 120_000

export async function erase(
  { account: value, reason, author = defaultAuthor(), ...source }: EraseOptions,
  report: Output['report'],
): Promise<CommandResult> {
  return withLedgerLog(source, report, 'append', async (log, configuration) => {
    for (const { name, spec } of configuredBudgets(configuration, undefined)) {
      if (spec.overrides?.some((one) => one.value === value) !== true) continue
      throw new UsageError(
        `GatewayBudget ${name} has an override for ${JSON.stringify(value)}; remove it first`,
      )
    }
    const isUnused = source.nats === undefined && !isLocked(source.logFile ?? '')
    const erasure = { value, reason, author, isUnused, patienceMs }
    const erased = await eraseValue(log, erasure).catch((error) => {
      throw error instanceof ErasureError ? new UsageError(error.message) : error
    })
    if (erased === undefined) {
      const text = `no budget has ${JSON.stringify(value)}`
      return { text: () => [text], json: { erased: false }, exitCode: exitCode.negative }
    }
    const { pseudonym, events, upTo } = erased
    report(
      'Only the ledger of budgets was changed. Manifests, keys, access logs and decision records may have the value too.',
    )
    if (source.nats !== undefined) {
      report('Files of the NATS server keep the bytes of removed messages until it rewrites them.')
    }
    return {
      text: () => [
        `erased: its balances continue as ${pseudonym}; ${events} events up to position ${upTo} were removed`,
      ],
      json: { erased: true, pseudonym, events, removedUpTo: upTo },
    }
  })
}

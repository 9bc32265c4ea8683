/** `sluice budgets purge` removes old events of the ledger. A snapshot keeps their sums. */
import { purgeLedger } from '../../../control/ledger/shorten-ledger.ts'
import { timeOf } from '../decisions/source.ts'
import type { CommandResult, Output } from '../shared/output.ts'
import { type LedgerSource, withLedgerLog } from './ledger.ts'

export interface PurgeOptions extends LedgerSource {
  readonly before: string
}

export async function purge(
  { before, ...source }: PurgeOptions,
  report: Output['report'],
): Promise<CommandResult> {
  const time = timeOf(before, '--before')
  return withLedgerLog(source, report, 'append', async (log) => {
    const { events, upTo } = await purgeLedger(log, Date.parse(time))
    if (events > 0) await log.compact()
    const text =
      events === 0
        ? `nothing to remove: no event but the last is older than ${time}`
        : `removed ${events} events before ${time}, up to position ${upTo}`
    return { text: () => [text], json: { before: time, events, removedUpTo: upTo } }
  })
}

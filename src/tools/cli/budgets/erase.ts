/** `sluice budgets erase` erases a value of `each` from the ledger. With an issuer, it also ends the user's access. */
import { ErasureError, eraseValue } from '../../../control/ledger/shorten-ledger.ts'
import { isLocked } from '../../../control/plane/file-lock.ts'
import { defaultAuthor } from '../recording/operator-change.ts'
import { type EndedUser, endUser } from '../revoke/end-user.ts'
import { type CommandResult, exitCode, type Output, UsageError } from '../shared/output.ts'
import { configuredBudgets, type LedgerSource, NoLedgerError, withLedgerLog } from './ledger.ts'

export interface EraseOptions extends LedgerSource {
  readonly account: string
  /** Issuer of the user's tokens; if omitted, only the ledger is changed. */
  readonly issuer?: string
  /** Subject of the user; if omitted, the account. */
  readonly sub?: string
  readonly for: string
  readonly grantStore?: string
  readonly reason: string
  readonly author?: string
}

/** The ledger releases the allowances of a proxy that has died after 90 seconds. */
const patienceMs = 120_000

/** @throws UsageError */
export async function erase(
  options: EraseOptions,
  report: Output['report'],
): Promise<CommandResult> {
  const { issuer, account, sub = account, author = defaultAuthor() } = options
  if (issuer === undefined) {
    if (options.sub === undefined) return eraseAccount(options, author, report)
    throw new UsageError('--sub needs --issuer')
  }
  // First, so that no request of the user reaches the ledger again.
  const ended = await endUser({ ...options, issuer, sub, author }, report)
  const erased = await eraseAccount(options, author, report).catch((error: unknown) => {
    if (!(error instanceof NoLedgerError)) throw error
    return { text: () => [error.message], json: { erased: false } }
  })
  return {
    text: () => [...endedText(ended), ...erased.text()],
    json: { ...(erased.json as object), ended },
  }
}

const endedText = ({ until, grants }: EndedUser): string[] => [
  `ended: sessions and tokens of the user are refused until ${until}; ${grants} grants at other services were removed`,
]

async function eraseAccount(
  { account: value, reason, logFile, nats }: EraseOptions,
  author: string,
  report: Output['report'],
): Promise<CommandResult> {
  const source: LedgerSource = {
    ...(logFile !== undefined && { logFile }),
    ...(nats !== undefined && { nats }),
  }
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

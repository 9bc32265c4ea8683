/** Opens the ledger that belongs to an event log, and finds the budgets of the configuration in it. */
import { existsSync } from 'node:fs'
import type { GatewayBudgetSpec } from '../../../control/api/gateway-budget.ts'
import type { BudgetState } from '../../../control/ledger/budget-state.ts'
import type { LedgerFold } from '../../../control/ledger/ledger-fold.ts'
import { foldLedger } from '../../../control/ledger/read-ledger.ts'
import {
  type EventLog,
  joinEmbeddedLog,
  LogError,
  readEmbeddedLog,
} from '../../../control/log/index.ts'
import { compareText } from '../../../ground/model/names.ts'
import type { Fold } from '../../../past/replay/index.ts'
import { isDatabase } from '../recording/log-files.ts'
import { type RecordingOptions, readState } from '../recording/recording.ts'
import { type Output, UsageError } from '../shared/output.ts'

/** Where the ledger is: beside a log file, or on a NATS server. */
export type LedgerSource = Pick<RecordingOptions, 'logFile' | 'nats'>

/** A GatewayBudget of the configuration. */
export interface ConfiguredBudget {
  /** `namespace/name`. */
  readonly name: string
  readonly uid: string
  readonly spec: GatewayBudgetSpec
  /** Undefined if the ledger does not have the budget: no gateway has read it yet. */
  readonly state: BudgetState | undefined
}

interface OpenLedger {
  readonly log: EventLog
  readonly fold: LedgerFold
  /** In the order of their names. */
  readonly budgets: readonly ConfiguredBudget[]
}

/** Thrown if no gateway that writes the log has had a GatewayBudget. */
export class NoLedgerError extends UsageError {}

/** The file of the ledger beside an event log. */
const ledgerFileOf = (logFile: string): string => `${logFile}.ledger`

/** Opens the ledger of a log that was read; undefined if there is none, because no budget was ever configured. */
async function openLedger(
  { logFile = '', nats }: LedgerSource,
  access: 'read' | 'append',
): Promise<EventLog | undefined> {
  if (nats !== undefined) {
    const { openNatsLog } = await import('../../../control/log/nats.ts')
    return openNatsLog({ servers: nats, log: 'ledger', create: false }).catch((error) => {
      if (error instanceof LogError && error.code === 'missing') return undefined
      throw error
    })
  }
  const path = ledgerFileOf(logFile)
  // An export of a log has no ledger.
  if (!existsSync(path) || !isDatabase(logFile)) return undefined
  return access === 'read' ? readEmbeddedLog(path) : joinEmbeddedLog(path)
}

/**
 * Passes the log of the ledger, and the state of the configuration, to `use`, and closes the log.
 * @throws UsageError if there is no ledger
 */
export async function withLedgerLog<Result>(
  source: LedgerSource,
  report: Output['report'],
  access: 'read' | 'append',
  use: (log: EventLog, configuration: Fold) => Promise<Result>,
): Promise<Result> {
  const { fold: configuration } = await readState(source, report)
  const log = await openLedger(source, access)
  if (log === undefined) {
    const where = source.nats === undefined ? source.logFile : 'the NATS server'
    throw new NoLedgerError(
      `${where} has no ledger of budgets: no gateway that writes this log has had a GatewayBudget`,
    )
  }
  try {
    return await use(log, configuration)
  } catch (error) {
    throw error instanceof LogError ? new UsageError(`the ledger: ${error.message}`) : error
  } finally {
    await log.close()
  }
}

/** Like `withLedgerLog`, with the balances. */
export const withLedger = <Result>(
  source: LedgerSource,
  report: Output['report'],
  use: (ledger: OpenLedger) => Promise<Result>,
  access: 'read' | 'append' = 'read',
): Promise<Result> =>
  withLedgerLog(source, report, access, async (log, configuration) => {
    const fold = await foldLedger(log)
    return use({ log, fold, budgets: configuredBudgets(configuration, fold) })
  })

/** The ledger of a log that was read; undefined if it has none. */
export async function ledgerOf(source: LedgerSource): Promise<LedgerFold | undefined> {
  const log = await openLedger(source, 'read')
  try {
    return log && (await foldLedger(log))
  } finally {
    await log?.close()
  }
}

export function configuredBudgets(
  configuration: Fold,
  ledger: LedgerFold | undefined,
): ConfiguredBudget[] {
  return [...configuration.graph.objects()]
    .flatMap(({ ref, uid, object }): ConfiguredBudget[] => {
      if (ref.kind !== 'GatewayBudget' || object === undefined) return []
      const spec = object.spec as GatewayBudgetSpec
      return [{ name: `${ref.namespace}/${ref.name}`, uid, spec, state: ledger?.budgets.get(uid) }]
    })
    .sort((a, b) => compareText(a.name, b.name))
}

/**
 * Finds a budget by `namespace/name`, or by its name if only one namespace has it.
 * @throws UsageError
 */
export function budgetNamed(
  { budgets }: OpenLedger,
  name: string,
): ConfiguredBudget & { readonly state: BudgetState } {
  const found = budgets.filter((one) => one.name === name || one.name.split('/')[1] === name)
  const [budget] = found
  const listed = (of: readonly ConfiguredBudget[]) => of.map((one) => one.name).join(', ')
  if (budget === undefined) {
    const known = budgets.length === 0 ? 'none is configured' : `there are ${listed(budgets)}`
    throw new UsageError(`there is no GatewayBudget ${name}; ${known}`)
  }
  if (found.length > 1) throw new UsageError(`${name} is ambiguous: ${listed(found)}`)
  const { state } = budget
  if (state === undefined || state.window === 0) {
    throw new UsageError(
      `GatewayBudget ${budget.name} is not in the ledger: it is in force nowhere, or no gateway has run with it`,
    )
  }
  return { ...budget, state }
}

/**
 * Returns the value that an option names: of a budget with `each` it must be named, of others it must not.
 * @throws UsageError
 */
export function valueNamed({ name, spec }: ConfiguredBudget, value: string | undefined): string {
  if (spec.each === undefined) {
    if (value === undefined) return ''
    throw new UsageError(`GatewayBudget ${name} has no each, so it has no values; omit --value`)
  }
  if (value !== undefined) return value
  throw new UsageError(
    `GatewayBudget ${name} has an amount for each ${spec.each}; name one with --value`,
  )
}

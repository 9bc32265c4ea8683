/** `sluice status` prints the conditions of every object and the state of every proxy. */

import type { RolloutSnapshot } from '../../../control/actors/rollout.machine.ts'
import { spendStatus, withSpend } from '../../../control/ledger/balances.ts'
import { isLocked } from '../../../control/plane/file-lock.ts'
import { formatProblem, type SourceProblem } from '../../../control/watch/source-problem.ts'
import { type ObjectRef, objectText } from '../../../ground/model/names.ts'
import { placedConditions } from '../../../ground/model/placed-conditions.ts'
import { isRefusal } from '../../../past/explain/health.ts'
import { pinText, waitingObjects, waitingText } from '../../../past/explain/pin-text.ts'
import { type Fold, foldVersion } from '../../../past/replay/index.ts'
import { type ConfiguredBudget, configuredBudgets, ledgerOf } from '../budgets/ledger.ts'
import { budgetRow, budgetTable } from '../budgets/list.ts'
import { FieldPlaces } from '../recording/field-places.ts'
import { isDatabase } from '../recording/log-files.ts'
import {
  foldRecording,
  type RecordingOptions,
  readRecording,
  readState,
} from '../recording/recording.ts'
import { withUnaskedProxies } from '../recording/unasked-proxies.ts'
import { unresolvedReferences } from '../recording/unresolved-references.ts'
import { type CommandResult, exitCode, type Output, table, UsageError } from '../shared/output.ts'

const statusHeader = ['OBJECT', 'PLACE', 'CONDITION', 'STATUS', 'REASON', 'MESSAGE']

type Statuses = ReturnType<Fold['statuses']>

function statusRows(statuses: Statuses) {
  return statuses.flatMap(([ref, status]) =>
    placedConditions(status).map(({ place, condition }) => {
      const { type, status: value, reason, message } = condition
      const cells = [objectText(ref), place, type, value, reason, message]
      return { cells, isProblem: isRefusal(condition) }
    }),
  )
}

const proxyHeader = [
  'PROXY',
  'GATEWAY',
  'REPLICA',
  'ADDRESS',
  'VERSION',
  'STATE',
  'IN FORCE',
  'REFUSED',
]

/** A row for each proxy in the log: where it is connected, and which configuration it has applied. */
function proxyRows(fold: Fold): string[][] {
  return fold
    .proxies()
    .map(({ proxy, gateway, replica, address, version, state, watermark, rejections }) => [
      proxy,
      gateway ?? 'all',
      replica ?? '',
      address ?? '',
      version ?? '',
      state,
      watermark < 0 ? '' : String(watermark),
      String(Object.keys(rejections).length),
    ])
}

/** Object versions that were refused, with the reasons. */
function refusals(fold: Fold) {
  return [...fold.graph.objects()].flatMap(({ ref, refused }) =>
    refused === undefined ? [] : [{ ...ref, problems: refused.problems }],
  )
}

/** Maximum number of waiting objects that the text names. */
const maxWaiting = 20

function pinLines(fold: Fold): string[] {
  const { pin, heldBack } = fold
  if (pin === undefined) return []
  const waiting = waitingObjects(fold, maxWaiting)
  const more = heldBack.size - waiting.length
  return [
    `\n${pinText(pin)}`,
    ...waiting.map((one) => `${objectText(one)}: ${waitingText(one)}`),
    ...(more > 0 ? [`${more} more wait; \`sluice rollback\` names all`] : []),
  ]
}

function statusText(
  fold: Fold,
  rows: ReturnType<typeof statusRows>,
  budgets: readonly ConfiguredBudget[],
): string[] {
  const proxies = proxyRows(fold)
  const balances = budgets.map((one) => budgetRow(one, Date.now()))
  return [
    ...table([statusHeader, ...rows.map(({ cells }) => cells)]).split('\n'),
    ...(balances.length === 0 ? [] : [`\n${budgetTable(balances)}`]),
    ...(proxies.length === 0 ? [] : [`\n${table([proxyHeader, ...proxies])}`]),
    ...pinLines(fold),
    ...Array.from(fold.changes.held.keys(), (at) => `\nchange ${at} is held (sluice approve)`),
    ...Array.from(fold.rollouts.rollouts.values(), rolloutLine),
    ...refusals(fold).flatMap(({ problems, ...ref }) =>
      problems.map(({ path, message }) => `refused: ${objectText(ref)}: ${path}: ${message}`),
    ),
  ]
}

const rolloutLine = ({ value, context: { position, steps } }: RolloutSnapshot): string =>
  value === 'rolledBack'
    ? `\nrollout ${position} was rolled back (sluice rollout)`
    : `\nrollout ${position} is at step ${steps.at(-1)?.number ?? 0} (sluice rollout)`

/** The parts of a warning that JSON output shows. */
function warningOf({ severity: _, reason: _reason, ...warning }: SourceProblem) {
  return warning
}

export interface StatusOptions extends RecordingOptions {
  /** Exits with 1 if a reference leads to an object that the manifests do not define. */
  readonly strict?: boolean
}

async function readStatus(options: StatusOptions, report: Output['report']) {
  if (options.file === undefined) {
    const { fold, extent } = await readState(options, report)
    // The ledger is read as it is now, so it says nothing about an earlier state.
    const budgets = options.at === undefined ? await budgetsOf(options, fold, report) : []
    return { fold, extent, budgets, warnings: [] }
  }
  const places = new FieldPlaces()
  const recording = await readRecording({ ...options, places }, report)
  const fold = await foldRecording(recording)
  const warnings = unresolvedReferences(recording, fold, places)
  return { fold, extent: recording.extent, budgets: [], warnings }
}

/** The budgets with a balance. A ledger that cannot be read does not hide the conditions. */
async function budgetsOf(
  options: StatusOptions,
  fold: Fold,
  report: Output['report'],
): Promise<ConfiguredBudget[]> {
  try {
    const ledger = await ledgerOf(options)
    return configuredBudgets(fold, ledger).filter(({ state }) => state !== undefined)
  } catch (error) {
    report(
      `the ledger of budgets cannot be read: ${error instanceof Error ? error.message : error}`,
    )
    return []
  }
}

/** Adds what is spent to the status of a GatewayBudget, as in a cluster. */
function statusWithSpend(
  budgets: readonly ConfiguredBudget[],
  ref: ObjectRef,
  status: Statuses[number][1],
): Statuses[number][1] {
  if (ref.kind !== 'GatewayBudget') return status
  const budget = budgets.find(({ name }) => name === `${ref.namespace}/${ref.name}`)
  if (budget?.state === undefined) return status
  const spend = spendStatus(budget.state, budget.spec.each, Date.now())
  const shown = Object.entries(withSpend(status ?? {}, spend))
  return Object.fromEntries(shown.filter(([, value]) => value !== null))
}

const leftText = 'no gateway runs with this log: these are the conditions that the last one left'

/** Whether the log is one that no gateway writes now. An export, and a log on a server, do not say. */
const isLeft = ({ logFile, at }: StatusOptions): boolean =>
  logFile !== undefined && at === undefined && isDatabase(logFile) && !isLocked(logFile)

/** Manifests are also checked for unresolved references. A log records what exists, so it is not. */
export async function status(
  options: StatusOptions,
  report: Output['report'],
): Promise<CommandResult> {
  const { strict = false, file } = options
  if (strict && file === undefined) throw new UsageError('--strict needs manifests (-f)')
  const { fold, extent, budgets, warnings } = await readStatus(options, report)
  if (isLeft(options)) report(leftText)
  for (const warning of warnings) report(formatProblem(warning))
  const statuses = () =>
    file === undefined
      ? fold
          .statuses()
          .map(([ref, decided]) => [ref, statusWithSpend(budgets, ref, decided)] as const)
      : fold.statuses().map(([ref, decided]) => [ref, withUnaskedProxies(decided)] as const)
  const rows = statusRows(statuses())
  return {
    text: () => statusText(fold, rows, budgets),
    isProblem: (line) => rows[line - 1]?.isProblem === true,
    // Hashing the whole state takes a good part of the command's time, and the text does not show the digests.
    get json() {
      return {
        objects: statuses().map(([ref, decided]) => ({ ...ref, status: decided })),
        refused: refusals(fold),
        proxies: fold.proxies(),
        ...(fold.pin && { pin: fold.pin, waiting: waitingObjects(fold) }),
        ...(fold.changes.held.size > 0 && { held: [...fold.changes.held.values()] }),
        digests: fold.digests(),
        foldVersion,
        history: { state: extent.state, first: extent.first },
        ...(file !== undefined && { warnings: warnings.map(warningOf) }),
      }
    },
    exitCode: strict && warnings.length > 0 ? exitCode.negative : exitCode.success,
  }
}

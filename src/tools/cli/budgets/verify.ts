/** `sluice budgets verify` folds the whole ledger again, and compares the balances with those of its snapshots. */
import { type BudgetChargedData, budgetCharged } from '../../../../events/index.ts'
import { LedgerFold } from '../../../control/ledger/ledger-fold.ts'
import { ledgerVersion } from '../../../control/ledger/read-ledger.ts'
import type { EventLog, Position, SnapshotInfo } from '../../../control/log/index.ts'
import { isObject } from '../../../ground/base/json-object.ts'
import { type CommandResult, exitCode, type Output } from '../shared/output.ts'
import { configuredBudgets, type LedgerSource, withLedgerLog } from './ledger.ts'

/** A part of the state that differs between a snapshot and the events before it. */
interface Difference {
  readonly position: number
  /** Where in the state, such as `budgets default/money balances sales spent`. */
  readonly place: string
  readonly stored: string
  readonly folded: string
}

/** Maximum number of differences that are listed for each snapshot. */
const maxListed = 20

/** The reports of one holder, which must have the numbers 1, 2, 3, … */
class Reports {
  readonly #last = new Map<string, number>()
  readonly gaps: string[] = []
  repeated = 0

  add({ holder, sequence, charges }: BudgetChargedData): void {
    const last = this.#last.get(holder) ?? 0
    // An event without charges may repeat a number: it says that the holder runs.
    if (sequence <= last && charges.length > 0) this.repeated++
    if (sequence > last + 1) {
      const range = sequence === last + 2 ? `${last + 1}` : `${last + 1} to ${sequence - 1}`
      this.gaps.push(`${holder}: ${range}`)
    }
    this.set(holder, Math.max(last, sequence))
  }

  /** Sets the number of the last report of a holder. */
  set(holder: string, sequence: number): void {
    this.#last.set(holder, sequence)
  }
}

/** Lists where two states differ. Lists of pairs are compared by their keys. */
function* differences(stored: unknown, folded: unknown, place: string): Generator<string[]> {
  if (isObject(stored) && isObject(folded)) {
    const names = new Set([...Object.keys(stored), ...Object.keys(folded)])
    for (const name of names) yield* differences(stored[name], folded[name], `${place} ${name}`)
    return
  }
  if (Array.isArray(stored) && Array.isArray(folded)) {
    const [left, right] = [keyed(stored), keyed(folded)]
    yield* differences(left, right, place)
    return
  }
  const [left, right] = [JSON.stringify(stored) ?? 'nothing', JSON.stringify(folded) ?? 'nothing']
  if (left !== right) yield [place.trim(), left, right]
}

/** Entries of a map are pairs, or have a name or an id. */
function keyed(items: readonly unknown[]): Record<string, unknown> {
  return Object.fromEntries(
    items.map((item, at) => {
      if (Array.isArray(item) && item.length === 2) return [`${item[0]}`, item[1]]
      const name = isObject(item) ? (item.name ?? item.id) : undefined
      return [typeof name === 'string' ? name : `${at}`, item]
    }),
  )
}

async function compare(
  log: EventLog,
  fold: LedgerFold,
  { position }: SnapshotInfo,
): Promise<Difference[]> {
  const stored = new LedgerFold()
  try {
    const snapshot = await log.loadSnapshot({ foldVersion: ledgerVersion, atMost: position })
    // It was removed in the meantime.
    if (snapshot?.position !== position) return []
    stored.restore(Buffer.concat(snapshot.chunks).toString())
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    return [{ position, place: 'the whole snapshot', stored: reason, folded: 'a state' }]
  }
  if (stored.digest() === fold.digest()) return []
  const states = [JSON.parse(stored.snapshot()), JSON.parse(fold.snapshot())] as const
  const found = differences(...states, '')
    .take(maxListed)
    .map(([place = '', left = '', right = '']) => ({
      position,
      place,
      stored: left,
      folded: right,
    }))
    .toArray()
  const order = { position, place: 'the order of entries', stored: 'another', folded: 'this one' }
  return found.length > 0 ? found : [order]
}

interface Verified {
  readonly events: number
  readonly from: number
  readonly to: number
  readonly fold: LedgerFold
  readonly reports: Reports
  readonly compared: number
  readonly incomparable: number
  readonly differences: readonly Difference[]
}

/** Folds from the first event; if the first ones were removed, from the oldest snapshot. */
async function verify(log: EventLog): Promise<Verified> {
  const snapshots = await log.snapshots()
  const usable = snapshots.filter(({ foldVersion }) => foldVersion === ledgerVersion)
  const fold = new LedgerFold()
  const reports = new Reports()
  const found: Difference[] = []
  const first = await log.firstPosition()
  const waiting = [...usable]
  if (first > 1) {
    const base = await log.loadSnapshot({
      foldVersion: ledgerVersion,
      atMost: waiting[0]?.position ?? first,
    })
    if (base !== undefined) fold.restore(Buffer.concat(base.chunks).toString())
    waiting.shift()
    for (const [holder, { sequence }] of fold.holders) reports.set(holder, sequence)
  }
  let events = 0
  let compared = 0
  const from = Math.max(first, fold.position + 1) as Position
  for await (const recorded of log.read({ from })) {
    fold.apply(recorded)
    events++
    if (recorded.event.type === budgetCharged.type) reports.add(recorded.event.data)
    for (; waiting[0] !== undefined && waiting[0].position <= recorded.position; waiting.shift()) {
      compared++
      found.push(...(await compare(log, fold, waiting[0])))
    }
  }
  const incomparable = snapshots.length - usable.length
  return {
    events,
    from,
    to: fold.position,
    fold,
    reports,
    compared,
    incomparable,
    differences: found,
  }
}

export async function verifyLedger(
  source: LedgerSource,
  report: Output['report'],
): Promise<CommandResult> {
  return withLedgerLog(source, report, 'read', async (log, configuration) => {
    const verified = await verify(log)
    const budgets = configuredBudgets(configuration, verified.fold)
    const { events, from, to, fold, reports, compared, incomparable } = verified
    const names = new Map(budgets.map(({ uid, name }) => [uid, name]))
    const named = (place: string) => place.replace(/\S+/g, (word) => names.get(word) ?? word)
    const different = verified.differences.map((one) => ({ ...one, place: named(one.place) }))
    const isGood = different.length === 0 && reports.gaps.length === 0
    return {
      text: () => [
        `events     ${events}, from position ${from} to ${to}`,
        `state      ${fold.digest()} (${fold.budgets.size} budgets, ${fold.holders.size} runs of proxies)`,
        `snapshots  ${compared} compared, ${new Set(different.map(({ position }) => position)).size} differ`,
        ...different.map(
          ({ position, place, stored, folded }) =>
            `snapshot ${position}: ${place}: stored ${stored}, folded ${folded}`,
        ),
        ...(incomparable > 0
          ? [`${incomparable} snapshots of other versions are not compared`]
          : []),
        ...(reports.repeated > 0
          ? [`${reports.repeated} reports are in the log twice and counted once`]
          : []),
        ...reports.gaps.map((gap) => `reports are missing: ${gap}`),
      ],
      json: {
        events,
        from,
        to,
        digest: fold.digest(),
        snapshots: { compared, incomparable },
        different,
        repeatedReports: reports.repeated,
        missingReports: reports.gaps,
      },
      exitCode: isGood ? exitCode.success : exitCode.negative,
    }
  })
}

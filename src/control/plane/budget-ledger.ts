/** Runs the ledger of budgets beside a control plane. Its log is opened when the first budget is configured. */
import { setTimeout as after } from 'node:timers/promises'
import type { LedgerMetric, Series } from '../../gateway/proxy/telemetry/metric-definitions.ts'
import { systemClock } from '../../ground/base/clock.ts'
import type {
  BudgetConfig,
  ConnectLedger,
  HolderReport,
  LedgerConnection,
} from '../../ground/model/budgets.ts'
import type { ObjectKey } from '../../ground/model/names.ts'
import type { DesiredDelta, ResourceKey } from '../../ground/model/resources.ts'
import { type BudgetDefinition, definitionOf } from '../ledger/budget-state.ts'
import { Ledger } from '../ledger/ledger.ts'
import type { LedgerChange } from '../ledger/ledger-fold.ts'
import { SpendStatuses } from '../ledger/spend-statuses.ts'
import type { EventLog } from '../log/index.ts'
import { BudgetWarnings, type WarningHost } from './budget-warnings.ts'
import { ledgerSnapshot } from './ledger-metrics.ts'
import { LedgerRetention } from './ledger-retention.ts'

interface BudgetLedgerOptions {
  readonly warnings: WarningHost
  readonly openLog: () => Promise<EventLog>
  /** Whether all proxies are in this process, so that there is only one holder at a time. */
  readonly isSole: boolean
  /** How long events are kept; 0 keeps all. */
  readonly retentionMs: number
  readonly notify: (severity: 'info' | 'warn' | 'error', text: string) => void
}

/** Delay before the log of the ledger is opened again after a failure. */
const retryMs = 1_000
/** How often it is looked at which warnings were not passed on, since another replica may have failed to. */
const warnTickMs = 1_000

interface Opened {
  readonly log: EventLog
  readonly ledger: Ledger
}

export class BudgetLedger {
  readonly #options: BudgetLedgerOptions
  /** Budgets by the keys of their resources. */
  readonly #configs = new Map<ResourceKey, BudgetConfig>()
  readonly #over = new AbortController()
  readonly #available = Promise.withResolvers<Ledger>()
  #opening: Promise<Opened | undefined> | undefined
  #ledger: Ledger | undefined
  /** What the statuses of budgets say about spend. */
  readonly spend = new SpendStatuses()
  readonly #warnings: BudgetWarnings
  #warning: NodeJS.Timeout | undefined
  #retention: LedgerRetention | undefined

  constructor(options: BudgetLedgerOptions) {
    this.#options = options
    const { warnings, notify } = options
    this.#warnings = new BudgetWarnings({ ...warnings, notify, budgets: () => this.#budgets() })
  }

  /** Learns a change of the configuration. */
  publish({ upserted, removed }: DesiredDelta): void {
    let hasChanged = false
    for (const key of removed) hasChanged = this.#configs.delete(key) || hasChanged
    for (const { resource } of upserted) {
      if (resource.type !== 'policy' || resource.field !== 'budgets') continue
      const config = JSON.parse(resource.config) as BudgetConfig | null
      if (config === null) this.#configs.delete(resource.key)
      else this.#configs.set(resource.key, config)
      hasChanged = true
    }
    if (!hasChanged) return
    if (this.#configs.size > 0) this.#opening ??= this.#open()
    this.spend.configure(this.#budgets())
    void this.#available.promise.then((ledger) => ledger.configure(this.#definitions()))
  }

  /** Takes the statuses of budgets that are due. Returns the keys of their objects. */
  takeStatuses(): ObjectKey[] {
    const times = { now: systemClock.now(), monotonic: performance.now() }
    return this.#ledger === undefined ? [] : this.spend.take(this.#ledger.fold, times)
  }

  /** Metrics of all budgets; none before the ledger is open. */
  metrics(): Partial<Record<LedgerMetric, readonly Series[]>> {
    if (this.#ledger === undefined) return {}
    const series = [...this.#warnings.counts.values()].map(({ labels, count }) => ({
      labels,
      values: [count],
    }))
    return {
      ...ledgerSnapshot(this.#ledger.fold, this.#budgets(), systemClock.now()),
      budget_warnings_total: series,
    }
  }

  /** The newest generation of each budget; one object may have several targets. */
  #budgets(): Map<string, BudgetConfig> {
    const found = new Map<string, BudgetConfig>()
    for (const config of this.#configs.values()) {
      if ((found.get(config.id)?.generation ?? -1) < config.generation) found.set(config.id, config)
    }
    return found
  }

  #definitions(): Map<string, BudgetDefinition> {
    return new Map([...this.#budgets()].map(([id, config]) => [id, definitionOf(config)]))
  }

  async #open(): Promise<Opened | undefined> {
    const { openLog, isSole, retentionMs, notify, warnings } = this.#options
    const { signal } = this.#over
    let reported = ''
    while (!signal.aborted) {
      try {
        const log = await openLog()
        const onProblem = (text: string | undefined) =>
          text === undefined ? notify('info', 'the ledger is written again') : notify('error', text)
        const onChange = (changes: readonly LedgerChange[]) => {
          this.spend.note(changes)
          // While the log is read, the next events may say that a warning was passed on.
          if (this.#ledger !== undefined && ledger.fold.warnings.size > 0) {
            this.#warnings.update(ledger)
          }
        }
        const ledger = new Ledger({ log, isSole, onProblem, onChange })
        await ledger.open()
        const warn = () => this.#warnings.update(ledger)
        this.#warning = setInterval(warn, warnTickMs).unref()
        const { isWriting } = warnings
        this.#retention = new LedgerRetention({ log, retentionMs, isWriting, notify })
        ledger.configure(this.#definitions())
        this.#ledger = ledger
        this.#available.resolve(ledger)
        return { log, ledger }
      } catch (error) {
        const text = `the ledger of budgets cannot be opened: ${String(error)}`
        if (text !== reported) notify('error', text)
        reported = text
        await after(retryMs, undefined, { signal, ref: false }).catch(() => undefined)
      }
    }
    return undefined
  }

  /** Connects a holder. What it reports before the ledger is open is reported then. */
  readonly connect: ConnectLedger = (holder, receive) => {
    let connection: LedgerConnection | undefined
    let waiting: HolderReport | undefined
    let isClosed = false
    void this.#available.promise.then((ledger) => {
      if (isClosed) return
      connection = ledger.connect(holder, receive)
      if (waiting !== undefined) connection.report(waiting)
    })
    return {
      report: (report) => {
        waiting = report
        connection?.report(report)
      },
      close: () => {
        isClosed = true
        connection?.close()
      },
    }
  }

  async close(): Promise<void> {
    this.#over.abort()
    clearInterval(this.#warning)
    await this.#warnings.close()
    const opened = await this.#opening
    await this.#retention?.close()
    await opened?.ledger.close()
    await opened?.log.close().catch(() => undefined)
  }
}

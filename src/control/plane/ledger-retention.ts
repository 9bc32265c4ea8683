/**
 * Removes events of the ledger that are older than the retention, as `sluice budgets purge` does. Only the replica
 * that may write the log does so. Files are not rewritten: the log uses the room of removed events again.
 */
import { systemClock } from '../../ground/base/clock.ts'
import { purgeLedger } from '../ledger/shorten-ledger.ts'
import type { EventLog } from '../log/index.ts'

interface LedgerRetentionOptions {
  readonly log: EventLog
  /** How long events are kept; 0 keeps all. */
  readonly retentionMs: number
  /** Whether this replica may write the log now. */
  readonly isWriting: () => boolean
  readonly notify: (severity: 'info' | 'warn', text: string) => void
}

const leastPeriodMs = 1_000
const mostPeriodMs = 3_600_000

export class LedgerRetention {
  readonly #options: LedgerRetentionOptions
  readonly #over = new AbortController()
  readonly #timer: NodeJS.Timeout | undefined
  #purging: Promise<void> | undefined

  constructor(options: LedgerRetentionOptions) {
    this.#options = options
    const { retentionMs } = options
    if (retentionMs === 0) return
    const periodMs = Math.min(Math.max(leastPeriodMs, retentionMs / 24), mostPeriodMs)
    this.#timer = setInterval(() => this.#begin(), periodMs).unref()
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    this.#over.abort()
    await this.#purging
  }

  #begin(): void {
    if (!this.#options.isWriting()) return
    this.#purging ??= this.#purge().finally(() => {
      this.#purging = undefined
    })
  }

  async #purge(): Promise<void> {
    const { log, retentionMs, notify } = this.#options
    const before = systemClock.now() - retentionMs
    try {
      const { events } = await purgeLedger(log, before, this.#over.signal)
      const time = new Date(before).toISOString()
      if (events > 0) notify('info', `removed ${events} events before ${time} from the ledger`)
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error)
      notify('warn', `old events of the ledger cannot be removed: ${text}`)
    }
  }
}

/** Counts equal calls of tools. */
import { limitPeriodMs } from '../../../../ground/base/limit-periods.ts'
import type { PolicyHost, RateBucket } from '../../../../ground/exchange/rate-limits.ts'
import type { CallsConfig } from './calls-config.ts'

type RepeatsConfig = NonNullable<CallsConfig['repeats']>

/** Maximum number of different calls that a thread counts itself. */
const maxRecent = 8_192

/**
 * All threads share the counts. While their table has no room for another call, each thread counts further calls
 * itself, and drops the counts of the calls that it has not seen for longest.
 */
export class RepeatedCalls {
  readonly #shared: RateBucket
  readonly #recent: RecentCalls

  constructor(config: RepeatsConfig, host: PolicyHost, now = () => performance.now()) {
    const { calls, unit } = config
    this.#shared = host.bucket('repeats', { rate: calls, unit, burst: 0, isKeyed: true })
    this.#recent = new RecentCalls(config, now)
  }

  /** Counts a call, and returns whether it may be made. `digest` identifies equal calls. */
  take(digest: string): boolean {
    if (this.#shared.take(1, digest)) return true
    return this.#shared.isTableFull && this.#recent.take(digest)
  }
}

/** The counts of one thread, with the latest call last. They decrease evenly by `calls` in each period. */
class RecentCalls {
  readonly #counts = new Map<string, { used: number; at: number }>()
  readonly #calls: number
  readonly #periodMs: number
  readonly #now: () => number

  constructor({ calls, unit }: RepeatsConfig, now: () => number) {
    this.#calls = calls
    this.#periodMs = limitPeriodMs[unit]
    this.#now = now
  }

  take(digest: string): boolean {
    const at = this.#now()
    const known = this.#counts.get(digest)
    const refilled = known === undefined ? 0 : ((at - known.at) * this.#calls) / this.#periodMs
    const before = Math.max((known?.used ?? 0) - refilled, 0)
    const isAllowed = before + 1 <= this.#calls
    this.#counts.delete(digest)
    this.#counts.set(digest, { used: isAllowed ? before + 1 : before, at })
    if (this.#counts.size > maxRecent) {
      for (const oldest of this.#counts.keys()) {
        this.#counts.delete(oldest)
        break
      }
    }
    return isAllowed
  }
}
